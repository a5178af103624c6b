"""What two brokers say first on a new connection, and what they conclude from it.

Frames belong to a *stream*, which has a name. A hello tells at which number of its stream each life of its
broker began (`births`), from which number on all frames are still there (`kept`), and how far the other
side's stream was taken in. From both hellos both sides conclude alike whether anything was forgotten.
"""

from __future__ import annotations

import msgspec

from sojourn.errors import SojournError

HELLO_BYTES_MAX = 65_536
BIRTHS_MAX = 64
"""Lives that a hello tells of; a peer that was last met before them is told everything anew."""
NAME_MAX = 128
"""Characters of the name of a life or a stream."""
NUMBERS_END = 1 << 63
PROTOCOL = 7


class ChannelError(SojournError):
    """The other side broke the rules of a channel; its connection is to be closed."""


class Hello(msgspec.Struct, frozen=True):
    """The first thing either side says on a new connection."""

    protocol: int
    broker: str
    life: str
    """Which life of the broker this is: another one after each start."""
    stream: str
    """The name of the stream of frames that this side sends."""
    births: list[tuple[str, int]]
    """The last lives of this side, and the number of the stream's last frame when each began."""
    kept: int
    """This side still has all its frames after this number."""
    seen_stream: str
    """The stream of the other side that was last taken in; empty if none ever was."""
    number: int
    """Up to which number it was taken in."""
    rank: int
    seen_life: str
    """The life of the other side that the last frame was taken in from, and `rank` counts frames of."""
    epoch: int = 0
    """The latest date of a connection that this side has seen, so that clocks catch up."""
    network: str = ""
    """Which brokers and links there are (`Settings.network`): who reads another file is no neighbour."""
    memory: str = ""
    """What the broker's memory is called: another name after its store was deleted."""
    kept_events: int = 0
    """How many events the frames up to `kept` carried."""
    taken_events: int = 0
    """How many events the frames up to `number` carried."""
    birth_events: list[int] = []
    """For each of the births: how many events the frames carried that were sent before."""


def is_broken(sender: Hello, receiver: Hello) -> bool:
    """Whether the frames from one side to the other cannot go on where they were, judged by both hellos."""
    if receiver.seen_stream != sender.stream:
        # A receiver that never took in anything can begin with the first frame, if that is still there.
        return bool(receiver.seen_stream) or sender.kept > 0
    if receiver.number < sender.kept:
        return True  # the receiver has forgotten frames that it had acknowledged
    if receiver.seen_life not in (life for life, _ in sender.births):
        return receiver.number > 0 or bool(receiver.seen_life)
    return shared_until(sender, receiver) < receiver.number


def may_have_lost(own: Hello, other: Hello) -> bool:
    """Whether the side of the first hello has forgotten something, or may have."""
    if not other.seen_stream:
        return False  # the other side knows nothing of this one
    if other.seen_stream != own.stream or shared_until(own, other) < other.number:
        return True  # it has taken in what this side does not know to have said
    return own.seen_stream != other.stream or own.number < other.kept


def forgotten(own: Hello, other: Hello) -> int:
    """How many events the other side has forgotten, of those it had acknowledged and those it had sent.

    The end of its store is gone. Of a stream that one side does not know any more nothing can be said: most
    often both have begun anew, and a connection broke before either had heard so of the other.
    """
    found = 0
    if other.seen_stream == own.stream and other.number < own.kept:
        found += max(0, own.kept_events - other.taken_events)
    if own.seen_stream == other.stream and other.births:
        lives = [life for life, _ in other.births]
        if own.seen_life in lives:
            later = other.births[lives.index(own.seen_life) + 1 :]
        else:  # that life is forgotten as a whole, so one of the later ones began with what was left
            later = other.births[1:] or other.births
        life, known = min(later, key=lambda birth: birth[1], default=("", own.number))
        if known < own.number:
            events = dict(zip(reversed(lives), reversed(other.birth_events), strict=False))
            found += max(0, own.taken_events - events.get(life, own.taken_events))
    return found


def shared_until(sender: Hello, receiver: Hello) -> int:
    """Up to which number both sides speak of the same frames, and the receiver has them."""
    lives = [life for life, _ in sender.births]
    if receiver.seen_stream != sender.stream or receiver.seen_life not in lives:
        return 0
    # A later life that began with fewer frames than were taken in has forgotten the difference.
    later = sender.births[lives.index(receiver.seen_life) + 1 :]
    return min([receiver.number, *(number for _, number in later)])


def read_hello(body: bytes, who: str) -> Hello:
    """Return the hello that bytes hold, or refuse what no broker says; `who` is named then."""
    try:
        hello = msgspec.json.decode(body, type=Hello)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ChannelError(f"{who} sent a hello that cannot be read: {error}.") from None
    names = (
        hello.life,
        hello.stream,
        hello.seen_life,
        hello.seen_stream,
        hello.network,
        hello.memory,
        *(life for life, _ in hello.births),
    )
    births = (*(number for _, number in hello.births), *hello.birth_events)
    events = (hello.kept_events, hello.taken_events)
    numbers = (hello.kept, hello.number, hello.rank, hello.epoch, *events, *births)
    if max(map(len, names)) > NAME_MAX or not 0 <= min(numbers) <= max(numbers) < NUMBERS_END:
        raise ChannelError(f"{who} sent a hello with names or numbers that no broker has.")
    return hello
