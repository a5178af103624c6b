"""What a broker has from an earlier life is in doubt until everybody who may have it has spoken."""

from __future__ import annotations

from sojourn.broker.doubting import Doubts

CLIENT = 7


def test_a_broker_that_joined_meanwhile_has_to_speak_too() -> None:
    """A session that was given away and forgotten to be may have gone on to a broker that came since."""
    doubts = Doubts(0, 2, neighbours=[1], give_up_s=100.0)
    doubts.restarted(10.0)
    doubts.met(1)
    doubts.confronted(CLIENT, 10.0)
    doubts.regroup(3, [1, 2], left=())
    assert doubts.silent[CLIENT] == {1, 2}
    assert doubts.is_in_doubt(CLIENT, since_s=5.0, now=11.0)
