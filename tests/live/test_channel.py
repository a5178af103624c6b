"""A channel against connections that break anywhere and brokers that die and come back from a journal."""

import pickle
import random

import pytest

from sojourn.broker.channel import Channel, ChannelError, Position


class End:
    """A broker at one end: what it took in, and a journal that it can be restarted from."""

    def __init__(self, name: str, peer: str) -> None:
        self.name, self.peer = name, peer
        self.lives = 1
        self.channel = Channel(name, peer, "life 1", window_bytes=400)
        self.taken: list[bytes] = []
        self.volatile_taken: list[bytes] = []
        self.volatile_ever = 0
        self.snapshot = pickle.dumps((self.channel, self.taken))

    def save(self) -> None:
        """Keep what a restart would find."""
        self.snapshot = pickle.dumps((self.channel, self.taken))

    def die(self) -> None:
        """Come back with what was saved; volatile frames that were taken in are forgotten."""
        self.channel, self.taken = pickle.loads(self.snapshot)  # noqa: S301 - our own bytes
        self.volatile_taken = []
        self.lives += 1
        self.channel.reborn(f"life {self.lives}")

    def read(self, data: bytes) -> None:
        """Take in all that is new in these bytes."""
        durable = False
        for position, body in self.channel.arrived(data):
            if position.rank:
                self.volatile_taken.append(body)
                self.volatile_ever += 1
            else:
                self.taken.append(body)
                durable = True
            self.channel.took(position)
        if durable:
            self.save()  # as a broker does: what is acknowledged is in its journal


def connect(a: End, b: End) -> None:
    """Begin a new connection between two ends."""
    a.channel.opened()
    b.channel.opened()
    a.read(b.channel.greet())
    b.read(a.channel.greet())


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_or_repeated_whatever_breaks(seed: int) -> None:
    """Numbered frames arrive exactly once and in order; volatile ones at most once in a life."""
    draw = random.Random(seed)
    a, b = End("A", "B"), End("B", "A")
    sent: dict[str, list[bytes]] = {"A": [], "B": []}
    wires: dict[str, bytes] = {"A": b"", "B": b""}
    volatile = 0
    for step in range(2_000):
        end, other = draw.choice([(a, b), (b, a)])
        match draw.choices(["put", "volatile", "flush", "read", "break", "die"], [8, 3, 8, 8, 1, 0.3])[0]:
            case "put":
                body = f"{end.name}{step}".encode() + b"." * draw.randrange(60)
                end.channel.put(body)
                end.save()
                sent[end.name].append(body)
            case "volatile":
                volatile += end.channel.put(f"{end.name}{step}v".encode(), volatile=True)
            case "flush":
                wires[end.name] += end.channel.outgoing()
            case "read" if other.channel.open or wires[end.name]:
                cut = draw.randrange(len(wires[end.name]) + 1)
                other.read(wires[end.name][:cut])
                wires[end.name] = wires[end.name][cut:]
            case "break":
                wires = {"A": b"", "B": b""}
                a.channel.closed()
                b.channel.closed()
                connect(a, b)
            case "die":
                wires = {"A": b"", "B": b""}
                end.die()
                other.channel.closed()
                connect(a, b)
    connect(a, b)
    for _ in range(2_000):
        for end, other in ((a, b), (b, a)):
            other.read(end.channel.outgoing())
    assert a.taken == sent["B"]
    assert b.taken == sent["A"]
    assert a.channel.waiting == b.channel.waiting == 0
    assert a.channel.queued == b.channel.queued == 0
    for end in (a, b):
        assert len(set(end.volatile_taken)) == len(end.volatile_taken), "a volatile frame came twice"
    assert volatile > 100
    assert a.volatile_ever > 10, "hardly a volatile frame ever came through"


def test_volatile_frames_survive_a_broken_connection_while_both_brokers_live() -> None:
    """Only the death of a broker may cost a volatile frame."""
    a, b = End("A", "B"), End("B", "A")
    connect(a, b)
    for number in range(50):
        a.channel.put(b"%d" % number, volatile=True)
        b.read(a.channel.outgoing()[: -(number % 3) or None])
        connect(a, b)
    for _ in range(50):
        b.read(a.channel.outgoing())
        a.read(b.channel.outgoing())
    assert b.volatile_taken == [b"%d" % number for number in range(50)]


def test_the_window_and_the_queue_are_bounded() -> None:
    """No more is under way than the window allows, and a full queue takes no volatile frame."""
    a, b = End("A", "B"), End("B", "A")
    a.channel.queue_bytes = 1_000
    connect(a, b)
    for _ in range(20):
        a.channel.put(b"x" * 100)
    assert a.channel.full
    assert not a.channel.put(b"late", volatile=True)
    assert a.channel.refused == 1
    under_way = a.channel.outgoing()
    assert 400 <= len(under_way) <= 400 + 120
    assert a.channel.outgoing() == b"", "nothing more before an acknowledgement"
    b.read(under_way)
    a.read(b.channel.outgoing())
    assert a.channel.outgoing(), "the acknowledgement makes room"


def test_what_is_not_taken_in_is_not_acknowledged() -> None:
    """A frame stays with its sender until the receiver has it for good."""
    a, b = End("A", "B"), End("B", "A")
    connect(a, b)
    a.channel.put(b"one")
    assert [body for _, body in b.channel.arrived(a.channel.outgoing())] == [b"one"]
    assert b.channel.outgoing() == b""
    assert a.channel.waiting == 1
    connect(a, b)
    assert [body for _, body in b.channel.arrived(a.channel.outgoing())] == [b"one"], "it comes again"


def test_a_peer_that_breaks_the_rules_is_refused_in_one_sentence() -> None:
    """Wrong names, missing hellos, gaps and absurd lengths end the connection."""
    a, b = End("A", "B"), End("C", "A")
    a.channel.opened()
    with pytest.raises(ChannelError, match="is 'C', not 'B'"):
        list(a.channel.arrived(b.channel.greet()))
    a, b = End("A", "B"), End("B", "A")
    b.channel.open = True
    b.channel.put(b"x")
    with pytest.raises(ChannelError, match="before its hello"):
        list(a.channel.arrived(b.channel.outgoing()))
    connect(a, b)
    b.channel._pending = Position(6)
    b.channel.put(b"the seventh")
    with pytest.raises(ChannelError, match="some are missing"):
        list(a.channel.arrived(b.channel.outgoing()))
    a.channel.closed()
    with pytest.raises(ChannelError, match="over"):
        list(a.channel.arrived(b"\xff" * 20))
