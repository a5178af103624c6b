"""A whole node: its topics over GPSR or over AODV.

Each function takes one fact (something was heard, a link broke, a timer fired, the application acts), lets
the layer concerned answer, and then settles what the layers have for each other: ROUTE goes down to the
routing protocol, ARRIVED up to the topics, until only SEND, DELIVER, LOST and TIMER are left for the driver.
"""

from typing import NamedTuple

from sojourn.adhoc.aodv import core as aodv_core
from sojourn.adhoc.aodv.discovery import search_again
from sojourn.adhoc.aodv.routes import meet
from sojourn.adhoc.aodv.tables import Aodv
from sojourn.adhoc.gpsr import core as gpsr_core
from sojourn.adhoc.gpsr.neighbours import Gpsr, hear
from sojourn.adhoc.kernels import hot, inner
from sojourn.adhoc.packets import (
    ARRIVED,
    BEACON,
    DATA,
    EVERYBODY,
    REQUEST,
    ROUTE,
    SEND,
    Effects,
    Packet,
    Record,
    emit,
    emit_new,
)
from sojourn.adhoc.topics import core, repair
from sojourn.adhoc.topics.state import Topics

BEACON_BYTES = 20 + 12
"""IP header, identifier and place."""


class Cores(NamedTuple):
    """The state of all nodes of a run, layer by layer."""

    gpsr: Gpsr
    aodv: Aodv
    topics: Topics


@inner
def is_geographic(cores: Cores) -> bool:
    """Whether packets follow places."""
    return bool(cores.topics.stations[0].geographic != 0)


@inner
def settle(cores: Cores, node: int, x: float, y: float, now_s: float, out: Effects) -> None:
    """Let the layers of a node answer each other until only effects for the driver are left."""
    at = 0
    while at < out.filled[0]:
        row = out.rows[at]
        if row.effect == ROUTE:
            row.effect = 0
            if is_geographic(cores):
                gpsr_core.forward(cores.gpsr, node, x, y, row, now_s, out)
            else:
                aodv_core.route(cores.aodv, node, row, now_s, out)
        elif row.effect == ARRIVED:
            row.effect = 0
            if cores.topics.stations[node].repair != 0:
                repair.arrived(cores.topics, node, x, y, row, now_s, out)
            else:
                core.arrived(cores.topics, node, x, y, row, now_s, out)
        at += 1


@hot
def receive(
    cores: Cores, node: int, x: float, y: float, packet: Packet, now_s: float, draw: float, out: Effects
) -> None:
    """A packet was heard: for this node, for everybody, or for somebody else."""
    mine = packet.to in (node, EVERYBODY)
    if is_geographic(cores):
        hear(cores.gpsr, node, packet.sender, packet.x, packet.y, now_s)
    else:
        aodv_core.overhear(cores.aodv, node, packet.sender, now_s)
    if mine and packet.kind != BEACON:
        _take_in(cores, node, x, y, packet, now_s, draw, out)


@inner
def _take_in(
    cores: Cores, node: int, x: float, y: float, packet: Packet, now_s: float, draw: float, out: Effects
) -> None:
    """What was heard is for this node."""
    if packet.kind == DATA:
        if not is_geographic(cores):
            meet(cores.aodv, node, packet.sender, now_s)
        row = out.rows[emit(out, packet, ARRIVED if packet.to == EVERYBODY else ROUTE)]
        row.arrived_x, row.arrived_y = packet.x, packet.y
    else:
        aodv_core.receive(cores.aodv, node, packet, now_s, draw, out)
    settle(cores, node, x, y, now_s, out)


@inner
def link_broke(
    cores: Cores, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects
) -> None:
    """The MAC could not hand a packet to its next hop."""
    if is_geographic(cores):
        gpsr_core.link_broke(cores.gpsr, node, x, y, packet, now_s, out)
    else:
        aodv_core.link_broke(cores.aodv, node, packet, now_s, out)
    settle(cores, node, x, y, now_s, out)


@inner
def on_period(cores: Cores, node: int, x: float, y: float, now_s: float, out: Effects) -> None:
    """The periodic timer of the routing protocol: a beacon, or a hello.

    A node whose packets were heard in this beacon interval needs no beacon: every packet is one. Steady
    beacons go out all the same, as the ns-2 agent has them unless told otherwise.
    """
    if not is_geographic(cores):
        aodv_core.on_hello_timer(cores.aodv, node, now_s, out)
    elif cores.gpsr[node].steady != 0 or (now_s - cores.gpsr[node].said_s >= 0.5 * cores.gpsr[node].beacon_s):
        row = out.rows[emit_new(out, node, BEACON, SEND, now_s)]
        row.bytes = BEACON_BYTES
        row.x, row.y = x, y


@inner
def on_timer(cores: Cores, node: int, x: float, y: float, timer: Record, now_s: float, out: Effects) -> None:
    """A timer of AODV's search for a route ran out."""
    if timer.kind == REQUEST:
        search_again(cores.aodv, node, timer.goal, timer.token, timer.tries, now_s, out)
    settle(cores, node, x, y, now_s, out)


# ------------------------------------------------------------------------------ the application


@inner
def subscribe(
    cores: Cores, node: int, subscription: int, x: float, y: float, now_s: float, out: Effects
) -> None:
    """The application on a node renews a subscription."""
    at = core.subscribe(cores.topics, node, subscription, x, y, now_s, out)
    if cores.topics.stations[node].repair != 0:
        repair.list_receipts(cores.topics, node, out.rows[at], now_s)
    settle(cores, node, x, y, now_s, out)


@inner
def advertise(cores: Cores, node: int, topic: int, x: float, y: float, now_s: float, out: Effects) -> None:
    """The application on a node renews an advertisement."""
    core.advertise(cores.topics, node, topic, x, y, now_s, out)
    settle(cores, node, x, y, now_s, out)


@inner
def publish(
    cores: Cores, node: int, event: Record, tries: int, x: float, y: float, now_s: float, out: Effects
) -> None:
    """The application on a node publishes an event, or does so again since nobody confirmed it."""
    if cores.topics.stations[node].repair != 0:
        repair.publish(cores.topics, node, event, tries, x, y, now_s, out)
    else:
        core.publish(cores.topics, node, event, x, y, now_s, out)
    settle(cores, node, x, y, now_s, out)
