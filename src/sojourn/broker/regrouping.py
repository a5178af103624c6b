"""Brokers join and leave the network that a broker is in, while it goes on (`roll.py`).

| who | what happens there |
| --- | --- |
| everybody | numbers and names of brokers grow; nobody waits any more for a broker that has left |
| the neighbour of one that joins | a link more: it is told everything, as if it had lost its store |
| the neighbour of one that leaves | a link less: what that broker wanted is withdrawn |

The change is passed on before anything else is said that it leads to. Clients notice nothing of it.

A broker that leaves says so to its neighbour, which remembers that and goes by it once their connection has
ended: so the one that leaves knows that it was heard, by the acknowledgement, before it goes.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sojourn.broker import facts
from sojourn.broker.effects import Note
from sojourn.broker.frame_events import events_in
from sojourn.broker.messages import Roll as RollMessage
from sojourn.broker.offering import offer
from sojourn.broker.roll import Roll, RollError, is_same_founding, merged, roll_of, with_roll
from sojourn.broker.tree import overlay_of
from sojourn.errors import SojournError

if TYPE_CHECKING:
    from sojourn.broker.network import Network
    from sojourn.broker.settings import Settings

FACTS = frozenset({facts.RollTold, facts.SessionsOffered, facts.FarewellSaid})
"""What operators want of who joins and leaves."""
REMOVED = "the link was removed"
"""Why what was queued for a neighbour is lost."""


def heard(network: Network, message: RollMessage, sender: int, now: float) -> None:
    """A neighbour tells who has joined and left, as far as it knows."""
    said = Roll(tuple(tuple(row) for row in message.joined), tuple(sorted(message.left)))
    name = network.links.names_of[sender]
    if name in said.left:
        network.farewells.add(name)
        said = said._replace(left=tuple(one for one in said.left if one != name))
    take(network, said, now, sender)


def parted(network: Network, peer: str, now: float) -> None:
    """The connection to a neighbour has ended; one that has said farewell has left."""
    if peer in network.farewells:
        network.farewells.discard(peer)
        roll, number = roll_of(network.settings), network.links.numbers[peer]
        with contextlib.suppress(SojournError):  # somebody joined behind it meanwhile: it has not left
            take(network, roll._replace(left=tuple(sorted({*roll.left, peer}))), now, number)


def say_farewell(network: Network, now: float) -> None:
    """Tell the one neighbour of a broker that leaves so; it has nothing any more that anybody needs."""
    roll = roll_of(network.settings)
    name = network.settings.name
    check_may_leave(network.settings, name)
    network.farewells.add(name)
    network.links.flood(message_of(roll._replace(left=tuple(sorted({*roll.left, name})))), None, now)


def check_may_leave(settings: Settings, name: str) -> None:
    """Refuse a broker that is not there, or by which others are reached."""
    if name not in settings.brokers or name in settings.left:
        raise RollError(f"There is no broker {name!r} in the network that could leave it.")
    near = overlay_of(settings).neighbours[settings.brokers.index(name)]
    if len(near) > 1:
        others = ", ".join(settings.brokers[one] for one in near)
        raise RollError(
            f"{name} cannot leave: {others} reach each other by it. Let those behind it leave first, or stop "
            "all brokers and start them with another file."
        )


def check_is_gone(network: Network, name: str) -> None:
    """Refuse to give a broker up that is in reach: what only it has would be lost for nothing."""
    if network.links.numbers[name] not in network.links.out_of_reach():
        raise RollError(
            f"{name} is in reach, and so is not dead: let it leave without --dead, or stop it first."
        )


def take(network: Network, said: Roll, now: float, sender: int | None = None) -> bool:
    """Go by what somebody says of who has joined and left; return whether that was news."""
    settings = network.settings
    roll = merged(roll_of(settings), said)
    if roll is None:
        names = ", ".join(row[0] for row in said.joined)
        own = ", ".join(row[0] for row in settings.joined)
        raise RollError(
            f"{settings.name} knows {own} to have joined, and is told of {names}: brokers joined in two "
            "places at once, which one file for all brokers and a restart of all puts right."
        )
    if roll == roll_of(settings):
        return False
    if settings.name in roll.left:
        raise RollError(f"{settings.name} is told that it has left the network, and has not.")
    changed = with_roll(settings, roll)
    overlay_of(changed)  # which refuses a roll that would cut the network
    network.settings = changed
    gained, lost = network.links.regroup(network.settings)
    news = message_of(roll)
    for peer in network.links.neighbours.brokers:
        if peer not in (sender, *lost):
            network.links.send(network.links.neighbours.bit(peer), news, now)
    for peer in lost:
        _unlink(network, peer, now, is_told=peer == sender)
    for peer in gained:
        _link(network, peer, now)
    links, arrivals = network.links, network.arrivals
    arrivals.finder.out_of_reach = arrivals.missing(now)
    arrivals.finder.regroup(len(links.names_of), links.left, now)
    arrivals.doubts.regroup(len(links.names_of), links.neighbours.brokers, links.left)
    arrivals.time_passed(now)
    network.clients.foresee(network.settings)
    network.clients.notes.append(Note("regrouped", (network.settings,)))
    network.on_settings(network.settings)
    return True


def told(network: Network) -> RollMessage | None:
    """Return what a neighbour is told that may know of nobody who joined or left; None if nobody did."""
    roll = roll_of(network.settings)
    return message_of(roll) if roll != Roll() else None


def told_by_operator(network: Network | None, fact: facts.Remembered, now: float) -> None:
    """Do what an operator wants of who joins and leaves."""
    if network is None:
        raise RollError("This broker has no neighbours: stop it, and start it with a file that has some.")
    if isinstance(fact, facts.RollTold):
        take(network, Roll(fact.joined, fact.left), now)
    elif isinstance(fact, facts.SessionsOffered):
        offer(network.arrivals, fact.to, fact.most, now)
    else:
        say_farewell(network, now)


def as_told(settings: Settings, before: Settings) -> Settings:
    """Return settings with the roll that the broker was told in its last life: a file may be behind or ahead.

    Who is in the file and not in the network joins when it calls its neighbour.
    """
    if not is_same_founding(settings, before) or merged(roll_of(before), roll_of(settings)) is None:
        return settings
    return with_roll(settings, roll_of(before))


def message_of(roll: Roll) -> RollMessage:
    """Return what a neighbour is told of a roll."""
    return RollMessage([list(row) for row in roll.joined], list(roll.left))


def _link(network: Network, peer: int, now: float) -> None:
    clients, name = network.clients, network.links.names_of[peer]
    clients.broker.router.neighbour_gained(peer)
    network.links.link_to(peer)
    network.reconciling.welcome(peer, now)
    clients.carry_out(clients.broker.effects, now)
    network.link_changed(name, now, up=False)


def _unlink(network: Network, peer: int, now: float, *, is_told: bool) -> None:
    """Be linked to a broker no more; one that said so itself has nobody left for whom anything is lost."""
    clients, name = network.clients, network.links.names_of[peer]
    channel = network.links.unlink(peer)
    clients.broker.router.neighbour_lost(peer, for_good=True)
    clients.carry_out(clients.broker.effects, now)
    network.reconciling.part_with(peer, now)
    network.pressure.forget(name)
    network.confirming.lost(peer, now)
    if not is_told:
        clients.drops[REMOVED] += sum(events_in(body) for body in channel.reset())
