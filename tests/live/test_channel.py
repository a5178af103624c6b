"""A channel against connections that break anywhere, brokers that die, and brokers that forget."""

import pickle
import random

import pytest

from sojourn.broker.channel import Channel
from sojourn.broker.frame_heads import Position
from sojourn.broker.hello import BIRTHS_MAX, PROTOCOL, ChannelError
from tests.seeds import seeds


class End:
    """A broker at one end: what it took in, and a journal that it can be restarted from."""

    def __init__(self, name: str, peer: str) -> None:
        self.name, self.peer = name, peer
        self.lives = 1
        self.channel = Channel(name, peer, "life 1", window_bytes=400)
        self.taken: list[bytes] = []
        self.put: list[bytes] = []
        """The numbered frames that it remembers to have sent."""
        self.volatile_taken: list[bytes] = []
        """In all its lives."""
        self.lost: set[bytes] = set()
        """Frames that it had taken in and forgot."""
        self.resets = 0
        self.journal: list[bytes] = []
        self.begun_at = 0
        """Where in its journal it last began a life or a stream."""
        self.save()

    def save(self) -> None:
        """Note what a restart would find, if its store keeps the last line."""
        self.journal.append(pickle.dumps((self.channel, self.taken, self.put)))

    def die(self, *, forgets: int = 0) -> None:
        """Come back with what was saved but for the last lines; volatile frames are forgotten anyway."""
        had = self.taken
        self.journal = self.journal[: max(1, len(self.journal) - forgets)]
        self.channel, self.taken, self.put = pickle.loads(self.journal[-1])
        self._live_again(had)

    def lose_store(self) -> None:
        """Come back with nothing."""
        had, self.taken, self.put = self.taken, [], []
        self.channel = Channel(self.name, self.peer, f"life {self.lives + 1}", window_bytes=400)
        self.journal = []
        self._live_again(had)

    def _live_again(self, had: list[bytes]) -> None:
        self.lost |= {*had} - {*self.taken}
        self.lives += 1
        self.channel.reborn(f"life {self.lives}")
        self.save()
        self.begun_at = len(self.journal) - 1

    def send(self, body: bytes) -> None:
        """Queue a numbered frame, and note it."""
        self.channel.put(body)
        self.put.append(body)
        self.save()

    def _has_heard(self) -> bool:
        return self.channel.peer_hello is not None

    def read(self, data: bytes) -> None:
        """Take in all that is new in these bytes, as a broker does."""
        channel = self.channel
        if not channel.is_connected:
            return
        if not self._has_heard():
            assert not list(channel.arrived(data))
            if not self._has_heard():
                return
            hello = channel.peer_hello
            assert hello is not None
            data = b""
            if channel.has_forgotten:
                self.resets += 1
                for body in channel.reset(channel.shared):
                    channel.put(body)
                self.save()
                self.begun_at = len(self.journal) - 1
                return
            channel.greeted(hello.life, hello.stream)
            channel.agreed()
            self.save()
        durable = False
        for position, body in channel.arrived(data):
            if position.rank:
                self.volatile_taken.append(body)
            else:
                self.taken.append(body)
                durable = True
            channel.took(position)
        if durable:
            self.save()  # before it is acknowledged


def connect(a: End, b: End, heard: tuple[bool, bool] = (True, True)) -> None:
    """Begin a connection between two ends; if it breaks early, not both hear the other's hello."""
    a.channel.opened()
    b.channel.opened()
    hellos = a.channel.greet(), b.channel.greet()
    if heard[0]:
        a.read(hellos[1])
    if heard[1]:
        b.read(hellos[0])
    if heard != (True, True):
        a.channel.closed()
        b.channel.closed()


def agree(a: End, b: End) -> int:
    """Connect until both go on; return how many connections that took."""
    for count in range(1, 4):
        connect(a, b)
        assert a.channel.open == b.channel.open, "both conclude alike"
        if a.channel.open:
            return count
    raise AssertionError("they never agree")


def exchange_all(a: End, b: End) -> None:
    """Let everything through that waits."""
    agree(a, b)
    for _ in range(5_000):
        data = [(b, a.channel.outgoing()), (a, b.channel.outgoing())]
        for end, written in data:
            end.read(written)
        if not any(written for _, written in data):
            return
    raise AssertionError("they never come to an end")


class History:
    """Two ends to which anything may happen."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.a, self.b = End("A", "B"), End("B", "A")
        self.wires: dict[str, bytes] = {"A": b"", "B": b""}
        self.steps = self.volatile = 0

    def step(self, *, break_early: float = 0.0, forget: float = 0.0) -> None:
        """One thing happens to one end."""
        draw, self.steps = self.draw, self.steps + 1
        end, other = draw.choice([(self.a, self.b), (self.b, self.a)])
        kinds = ["put", "volatile", "flush", "read", "break", "die", "forget", "lose"]
        match draw.choices(kinds, [8, 3, 8, 8, 1, 0.3, forget, forget / 3])[0]:
            case "put":
                end.send(f"{end.name}{self.steps}".encode() + b"." * draw.randrange(60))
            case "volatile":
                self.volatile += end.channel.put(f"{end.name}{self.steps}v".encode(), volatile=True)
            case "flush":
                self.wires[end.name] += end.channel.outgoing()
            case "read" if self.wires[end.name]:
                cut = draw.randrange(len(self.wires[end.name]) + 1)
                other.read(self.wires[end.name][:cut])
                self.wires[end.name] = self.wires[end.name][cut:]
            case "break":
                self.connect(break_early)
            case "die":
                end.die()
                self.connect(break_early)
            case "forget":
                known = len(end.journal) - 1 - (0 if break_early else end.begun_at)
                end.die(forgets=min(known, draw.randrange(1, 12)))
                self.connect(break_early)
            case "lose":
                end.lose_store()
                self.connect(break_early)

    def connect(self, break_early: float) -> None:
        """A connection is lost and another one begins."""
        self.wires = {"A": b"", "B": b""}
        self.a.channel.closed()
        self.b.channel.closed()
        while self.draw.random() < break_early:
            connect(self.a, self.b, self.draw.choice([(True, False), (False, True), (False, False)]))
        if self.draw.random() < 0.8:
            connect(self.a, self.b)

    def ways(self) -> list[tuple[End, End]]:
        """Who sends to whom."""
        return [(self.a, self.b), (self.b, self.a)]


@pytest.mark.parametrize("seed", seeds(10, 30))
def test_nothing_is_lost_or_repeated_whatever_breaks(seed: int) -> None:
    """Numbered frames arrive exactly once and in order; volatile ones at most once."""
    history = History(seed)
    for _ in range(2_000):
        history.step(break_early=0.3)
    exchange_all(history.a, history.b)
    for sender, receiver in history.ways():
        assert receiver.taken == sender.put
        assert sender.channel.waiting == sender.channel.queued == 0
        assert not sender.resets, "nobody forgot anything"
        seen = receiver.volatile_taken
        assert len(set(seen)) == len(seen), "a volatile frame came twice"
    assert history.volatile > 100
    assert len(history.a.volatile_taken) > 10, "hardly a volatile frame ever came through"


@pytest.mark.parametrize("seed", seeds(12, 40))
def test_who_forgets_costs_only_what_was_forgotten(seed: int) -> None:
    """Stores that lose their last lines or everything: what both remember came once, and in order.

    Unless somebody forgets that it was restarted or began anew, or does not hear that it should, as below.
    """
    history = History(seed)
    for _ in range(1_500):
        history.step(forget=0.3)
    exchange_all(history.a, history.b)
    assert history.a.resets
    for sender, receiver in history.ways():
        assert len(set(receiver.taken)) == len(receiver.taken), "a frame was taken in twice"
        assert {*sender.put} - {*receiver.taken} <= receiver.lost, "a frame is lost that nobody forgot"
        common = {*sender.put} & {*receiver.taken}
        assert [one for one in receiver.taken if one in common] == [
            one for one in sender.put if one in common
        ]
        assert sender.channel.waiting == sender.channel.queued == 0


@pytest.mark.parametrize("seed", seeds(12, 40))
def test_a_beginning_that_only_one_side_knows_of_loses_nothing(seed: int) -> None:
    """The other did not hear the hello, or forgot that: they agree afterwards, and no frame is missing.

    Some may come twice, as nobody knows any more what the other side had; a broker looks at their content.
    """
    history = History(seed)
    for _ in range(1_500):
        history.step(forget=0.3, break_early=0.5)
        if not history.steps % 100:
            assert agree(history.a, history.b) <= 2
            history.connect(0.0)
    exchange_all(history.a, history.b)
    assert history.a.resets
    for sender, receiver in history.ways():
        assert {*sender.put} - {*receiver.taken} <= receiver.lost, "a frame is lost that nobody forgot"
        assert sender.channel.waiting == sender.channel.queued == 0


def test_a_frame_that_the_other_side_has_is_not_sent_again_when_both_begin_anew() -> None:
    """It was taken in, its acknowledgement was lost, and then its sender forgot what came after it."""
    a, b = End("A", "B"), End("B", "A")
    connect(a, b)
    a.send(b"kept")
    a.send(b"forgotten")
    b.read(a.channel.outgoing())
    assert b.channel.outgoing(), "the acknowledgement, which gets lost"
    a.die(forgets=1)
    a.send(b"new")
    assert agree(a, b) == 2
    exchange_all(a, b)
    assert b.taken == [b"kept", b"forgotten", b"new"]


def test_a_broker_that_was_restarted_very_often_meanwhile_is_believed_no_more() -> None:
    """A hello tells of a limited number of lives; who was last met before them is told everything anew."""
    a, b = End("A", "B"), End("B", "A")
    connect(a, b)
    a.send(b"one")
    exchange_all(a, b)
    for _ in range(BIRTHS_MAX - 1):
        a.die()
    assert agree(a, b) == 1
    for _ in range(3 * BIRTHS_MAX):
        a.die()
        a.send(b"a life")
    assert len(a.channel.births) <= BIRTHS_MAX + 1
    assert agree(a, b) == 2
    exchange_all(a, b)
    assert b.taken == [b"one"] + [b"a life"] * (3 * BIRTHS_MAX)


def test_volatile_frames_survive_a_broken_connection_while_both_brokers_live() -> None:
    """Only the death of a broker may cost a volatile frame."""
    a, b = End("A", "B"), End("B", "A")
    connect(a, b)
    for number in range(50):
        a.channel.put(b"%d" % number, volatile=True)
        b.read(a.channel.outgoing()[: -(number % 3) or None])
        connect(a, b)
    exchange_all(a, b)
    assert b.volatile_taken == [b"%d" % number for number in range(50)]


def test_a_receiver_that_died_is_not_sent_a_volatile_frame_again_that_it_may_have_handed_out() -> None:
    """What was not written yet still comes, and so do all numbered frames."""
    a, b = End("A", "B"), End("B", "A")
    connect(a, b)
    a.channel.put(b"handed out", volatile=True)
    a.send(b"numbered" + b"." * 400)
    a.channel.put(b"behind the window", volatile=True)
    a.channel.outgoing()
    b.volatile_taken.append(b"handed out")  # and died before it could note anything
    b.die()
    exchange_all(a, b)
    assert b.volatile_taken == [b"handed out", b"behind the window"]
    assert b.taken == a.put


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
    """Wrong names, missing and second hellos, other releases, gaps and absurd lengths end the connection."""
    a, b = End("A", "B"), End("C", "A")
    a.channel.opened()
    with pytest.raises(ChannelError, match="is 'C', not 'B'"):
        list(a.channel.arrived(b.channel.greet()))
    a, b = End("A", "B"), End("B", "A")
    with pytest.raises(ChannelError, match="speaks version 9"):
        list(a.channel.arrived(b.channel.greet().replace(b'"protocol":%d' % PROTOCOL, b'"protocol":9')))
    a.channel.closed()
    b.channel.open = True
    b.channel.put(b"x")
    with pytest.raises(ChannelError, match="before its hello"):
        list(a.channel.arrived(b.channel.outgoing()))
    connect(a, b)
    with pytest.raises(ChannelError, match="said hello twice"):
        list(a.channel.arrived(b.channel.greet()))
    connect(a, b)
    b.channel._pending = Position(6)
    b.channel.put(b"the seventh")
    with pytest.raises(ChannelError, match="some are missing"):
        list(a.channel.arrived(b.channel.outgoing()))
    a.channel.closed()
    with pytest.raises(ChannelError, match="over"):
        list(a.channel.arrived(b"\xff" * 20))
