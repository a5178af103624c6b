"""What a broker with a trace does beside serving: it seals what was noted, and says how busy it was.

Every `SEAL_S` seconds the trace gets a row of `broker_load` for the time since the last one, so that a broker
that is killed leaves the load of all but its last seconds. Busy is the time that the turns of the broker's
loop took, by a clock that goes on while they wait for the processor; what waits is looked at whenever it is
looked whether something is due, some fifty times a second while anything happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.live.tracing import Tracer

if TYPE_CHECKING:
    from sojourn.live.brokers.node import Node
    from sojourn.live.config import TraceConfig

SEAL_S = 5.0


class Recording:
    """The trace of one broker, sealed now and then."""

    def __init__(self, node: Node, wanted: TraceConfig, begun: Tracer | None = None) -> None:
        self._node = node
        now = self._since_s = self._looked_s = node.now()
        self.tracer = Tracer.open(wanted, node.place.name, now) if begun is None else begun
        self._handled = self._waiting = self._waiting_max = 0
        self._busy_s = self._waiting_area = 0.0
        self._timer = node.loop.call_later(SEAL_S, self._seal)

    def look(self, now: float) -> None:
        """Take note of how many clients sent something that waits its turn at this moment."""
        self._waiting_area += self._waiting * (now - self._looked_s)
        self._looked_s = now
        self._waiting = len(self._node.core.state.input.ring)
        self._waiting_max = max(self._waiting_max, self._waiting)

    def _seal(self) -> None:
        self._note_load()
        self.tracer.seal(self._node.now())
        self._timer = self._node.loop.call_later(SEAL_S, self._seal)

    def _note_load(self) -> None:
        """Write how busy the broker was since this was last written."""
        node, now = self._node, self._node.now()
        self.look(now)
        node.count_turns()
        handled, busy_s = node.handled - self._handled, node.turns.sum_s - self._busy_s
        if handled and now > self._since_s:
            mean = self._waiting_area / (now - self._since_s)
            self.tracer.load(handled, busy_s, self._waiting_max, mean)
            self._handled, self._busy_s = node.handled, node.turns.sum_s
            self._since_s, self._waiting_area, self._waiting_max = now, 0.0, self._waiting

    def close(self, *, may_end_run: bool = True) -> None:
        """Note what is still open; the first broker of the configuration ends the run, if it may.

        A thread writes it; who has to know that it is written waits for `tracer.closed`.
        """
        self._timer.cancel()
        self._note_load()
        is_first = self._node.place.name == self._node.config.brokers[0].name
        self.tracer.close(self._node.now(), ends_run=is_first and may_end_run)
