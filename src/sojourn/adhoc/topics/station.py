"""One node of `node.py` as a core that a radio could drive: a fact, the place and the time in, effects out.

    effects = station.handle(Heard(packet), place, now_s)

What simulations do with all nodes at once (`sim/manet/loop.py`) this does for one, by the same compiled
functions. A driver says what was heard and which link broke, calls back when a `TIMER` is due and once a
period, and carries out `SEND`; `DELIVER` is for the application, `LOST` for whoever counts. So a radio needs
four things: to send a packet to one neighbour or to all, to say what it hears, to say when a neighbour did
not acknowledge, and to know where it is.
"""

from typing import NamedTuple

import numpy as np

from sojourn.adhoc.kernels import entry
from sojourn.adhoc.packets import PACKET, Effects, Packet, Packets, make_effects
from sojourn.adhoc.topics.node import (
    Cores,
    advertise,
    link_broke,
    on_period,
    on_timer,
    publish,
    receive,
    subscribe,
)

_HEARD, _LINK_BROKE, _PERIOD, _TIMER, _SUBSCRIBE, _ADVERTISE, _PUBLISH = range(7)


class Heard(NamedTuple):
    """The radio heard a packet, for this node or for another one."""

    packet: Packet
    draw: float = 0.5
    """A number from 0 to 1, by which answers to a flood are spread."""


class LinkBroke(NamedTuple):
    """A packet was not acknowledged by the neighbour that it was sent to."""

    packet: Packet


class PeriodDue(NamedTuple):
    """It is time for a beacon or a hello."""


class TimerFired(NamedTuple):
    """A `TIMER` ran out; it is given back."""

    timer: Packet


class Subscribe(NamedTuple):
    """The application renews a subscription."""

    number: int


class Advertise(NamedTuple):
    """The application renews an advertisement."""

    topic: int


class Publish(NamedTuple):
    """The application publishes an event: a row with `event`, `topic`, `value`, `clearance` and `bytes`."""

    event: Packet
    tries: int = 1


Fact = Heard | LinkBroke | PeriodDue | TimerFired | Subscribe | Advertise | Publish


class Station:
    """Facts in, effects out."""

    def __init__(self, node: int, cores: Cores) -> None:
        """Of the cores' arrays only the row of this node is read and written."""
        self.node = node
        self._cores = cores
        self._out = make_effects()
        self._about = np.zeros(1, PACKET)

    def handle(self, fact: Fact, place: tuple[float, float], now_s: float) -> list[Packet]:
        """Take one fact; the effects are packets with `effect` set, to be carried out in their order."""
        kind, number, draw, tries = _PERIOD, 0, 0.0, 0
        match fact:
            case Heard(packet, draw):
                kind, self._about[0] = _HEARD, packet
            case LinkBroke(packet):
                kind, self._about[0] = _LINK_BROKE, packet
            case TimerFired(packet):
                kind, self._about[0] = _TIMER, packet
            case Publish(packet, tries):
                kind, self._about[0] = _PUBLISH, packet
            case Subscribe(number):
                kind = _SUBSCRIBE
            case Advertise(number):
                kind = _ADVERTISE
            case PeriodDue():
                pass
        out = self._out
        out.filled[:] = 0
        _tell(self._cores, self.node, kind, number, tries, draw, *place, now_s, self._about, out)
        rows = out.rows[: int(out.filled[0])]
        return [rows[at].copy() for at in np.flatnonzero(rows["effect"])]


@entry
def _tell(  # noqa: PLR0913, PLR0917 - kernels take what they need one by one
    cores: Cores,
    node: int,
    kind: int,
    number: int,
    tries: int,
    draw: float,
    x: float,
    y: float,
    now_s: float,
    about: Packets,
    out: Effects,
) -> None:
    if kind == _HEARD:
        receive(cores, node, x, y, about[0], now_s, draw, out)
    elif kind == _LINK_BROKE:
        link_broke(cores, node, x, y, about[0], now_s, out)
    elif kind == _PERIOD:
        on_period(cores, node, x, y, now_s, out)
    elif kind == _TIMER:
        on_timer(cores, node, x, y, about[0], now_s, out)
    elif kind == _SUBSCRIBE:
        subscribe(cores, node, number, x, y, now_s, out)
    elif kind == _ADVERTISE:
        advertise(cores, node, number, x, y, now_s, out)
    else:
        publish(cores, node, about[0], tries, x, y, now_s, out)
