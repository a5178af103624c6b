"""What operators can ask of a running broker: to read its configuration anew, to kick and to ban."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from sojourn.broker import facts
from sojourn.broker.regrouping import check_is_gone, check_may_leave
from sojourn.broker.ruling import BAN, KICK, UNBAN
from sojourn.errors import SojournError
from sojourn.live.brokers.control import UNEXPECTED, Answer, ControlError, Handler
from sojourn.live.brokers.leaving import Leaving, in_words
from sojourn.live.brokers.node import Node
from sojourn.mqtt.answers import UNPRINTABLE
from sojourn.mqtt.bans import BANS_MAX, SCOPES, WHOM_MAX, network_of, spelled

if TYPE_CHECKING:
    from sojourn.live.seats.chamber import Chamber

NAMED_MAX = 8
"""Brokers that an answer names; the rest is counted."""

STOP_AFTER_S = 0.1
"""How long a broker goes on that is told to stop, so that it can answer."""

_log = logging.getLogger("sojourn.operators")


def handlers_of(
    node: Node,
    reload: Callable[[Mapping[str, object]], Awaitable[str]],
    leaving: Leaving,
    stop: Callable[[], None],
    chamber: Chamber | None = None,
) -> dict[str, Handler]:
    """Return what a broker does by command."""
    of_guests: dict[Node, Leaving] = {}

    def leaving_of(asked: Mapping[str, Any]) -> tuple[str, Leaving]:
        """Return how a broker leaves: this one, or one that its process plays for another."""
        name = str(asked.get("guest", ""))
        if not name:
            return node.place.name, leaving
        guest = None if chamber is None else chamber.guests.get(name)
        if guest is None:
            raise ControlError(f"{node.place.name} does not play {name}.")
        found = of_guests.setdefault(guest.node, Leaving(guest.node, lambda: None, lambda: None))
        return name, found

    async def on_reload(asked: Mapping[str, Any]) -> Answer:
        said = await reload(asked)
        return Answer(said, {"said": said})

    async def on_order(asked: Mapping[str, Any]) -> Answer:
        return order(node, str(asked["command"]), asked)

    async def on_bans(_asked: Mapping[str, Any]) -> Answer:
        banned = [one for one in node.core.state.bans if one.banned]
        said = "\n".join(f"{one.scope}:{one.whom}" for one in banned)
        return Answer(said, {"bans": [{"scope": one.scope, "whom": one.whom} for one in banned]})

    async def on_roll(asked: Mapping[str, Any]) -> Answer:
        answer = roll(node, asked)
        if chamber is not None:
            answer.found.update(votes(chamber, asked))
        return answer

    async def on_leave(asked: Mapping[str, Any]) -> Answer:
        name, found = leaving_of(asked)
        left = found.go_on()
        return Answer(
            f"{name} still has {in_words(left)}" if left else f"{name} has nothing left", {"left": left}
        )

    async def on_farewell(asked: Mapping[str, Any]) -> Answer:
        name, found = leaving_of(asked)
        await found.farewell()
        return Answer(f"{name} has left the network", {"has_left": True})

    async def on_stop(_asked: Mapping[str, Any]) -> Answer:
        node.loop.call_later(STOP_AFTER_S, stop)
        return Answer(f"{node.place.name} stops", {"stops": True})

    orders = dict.fromkeys((KICK, BAN, UNBAN), on_order)
    leaves = {"roll": on_roll, "leave": on_leave, "farewell": on_farewell, "stop": on_stop}
    return {"reload": on_reload, **orders, "bans": on_bans, **leaves}


def roll(node: Node, asked: Mapping[str, Any]) -> Answer:
    """Say who has joined and left; leave a broker out that is gone for good, if that is asked."""
    gone, settings = str(asked.get("dead", "")), node.broker.settings
    if gone:
        if gone == settings.name:
            raise ControlError(f"{gone} answers, and so is not dead; leave out --dead.")
        if gone not in settings.left:
            check_may_leave(settings, gone)
            assert node.network is not None, "somebody else is in the network"
            check_is_gone(node.network, gone)
            node.tell(facts.RollTold(settings.joined, tuple(sorted({*settings.left, gone}))))
            node.flush()
    settings = node.broker.settings
    found = {"joined": [row[0] for row in settings.joined], "left": list(settings.left)}
    found["out_of_reach"] = _out_of_reach(node)
    return Answer(f"{settings.name} is in a network of {settings.drawn}", found)


def votes(chamber: Chamber, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return whose processes vote about copies, what this one plays, and what one waits for that has left."""
    council, name = chamber.council, str(asked.get("of", ""))
    found: dict[str, Any] = {"voters": list(council.desk.names), "plays": sorted(chamber.guests)}
    found["at_risk"] = sorted(filter(council.at_risk, council.serving))
    if name in council.desk.names:
        found["why"] = council.rolls.why_stays(name) or "a majority of the others has not agreed on it yet"
    return found


def order(node: Node, verb: str, asked: Mapping[str, Any]) -> Answer:
    """Kick or ban, or end a ban; say what was done here, and whether others were told.

    A broker without neighbours knows that there is nobody to kick, or no ban to end, and refuses. One that
    has some does not know: the client may be at another broker, or a ban may not have come here yet.
    """
    scope, whom = str(asked.get("scope", "client")), str(asked.get("whom", ""))
    if scope not in SCOPES or not 0 < len(whom) <= WHOM_MAX:
        raise ControlError(f"A {verb} names a client, a user or an address of up to {WHOM_MAX} characters.")
    if scope == "address" and network_of(whom) is None:
        raise ControlError(f"{whom!r} is neither an address nor a network such as 10.0.0.0/8.")
    if UNPRINTABLE.search(whom):
        raise ControlError(f"A {verb} names nobody with {whom!r}: no client can be called that.")
    whom = spelled(scope, whom)
    is_alone, name = node.links is None, node.place.name
    was_banned = _is_banned(node, scope, whom)
    if verb == UNBAN and not was_banned and is_alone:
        raise ControlError(f"{scope}:{whom} is not banned; `sojourn bans` prints who is.")
    before = {one for one in node.connections if _is_in(node, one)}
    node.tell(facts.OrderGiven(verb, scope, whom))
    node.flush()
    gone = sum(not _is_in(node, one) for one in before)
    _log.warning("%s of %s %s: %d connections ended here", verb, scope, whom, gone)
    if verb == BAN and not _is_banned(node, scope, whom):
        raise ControlError(f"{BANS_MAX:,} are banned already, and no more can be; end some bans first.")
    if verb == KICK and not gone and is_alone:
        raise ControlError(
            f"{scope}:{whom} is not connected, and {name} has no neighbours where it could be."
        )
    if verb == UNBAN:
        did = f"{name} lets it in again" if was_banned else f"{name} knew of no such ban"
    else:
        did = f"{gone} connection{'s'[: gone != 1]} ended at {name}"
    missing = _out_of_reach(node)
    said = f"{verb} {scope}:{whom}: {did}" + ("" if is_alone else f"; {_who_is_told(node, missing)}")
    if verb == BAN and node.keeper is None and is_alone:
        said += "; it has no store, so the ban ends with its process"
    found: dict[str, Any] = {"did": verb, "scope": scope, "whom": whom}
    found["others_told"] = len(missing) < len(node.broker.settings.brokers) - 1
    if not is_alone:
        found["out_of_reach"] = missing
    return Answer(said, found | ({"was_banned": was_banned} if verb == UNBAN else {"ended_here": gone}))


def _out_of_reach(node: Node) -> list[str]:
    """The brokers that cannot be told anything now, as far as is known here."""
    network = node.broker.network
    if network is None:
        return []
    return sorted(network.links.names_of[number] for number in network.links.out_of_reach())


def _who_is_told(node: Node, missing: list[str]) -> str:
    if not missing:  # a link that hangs is not known for some seconds
        return "the other brokers are told as soon as they can be reached"
    named = ", ".join(missing[:NAMED_MAX])
    if len(missing) > NAMED_MAX:
        named += f" and {len(missing) - NAMED_MAX} more"
    it, is_now = ("it is", "is") if len(missing) == 1 else ("they are", "are")
    rest = (
        "; the others are told as soon as they can be reached"
        if len(missing) < len(node.broker.settings.brokers) - 1
        else ""
    )
    return f"{named} {is_now} out of reach now, and told when {it} back{rest}"


def _is_banned(node: Node, scope: str, whom: str) -> bool:
    return any(one.banned and (one.scope, one.whom) == (scope, whom) for one in node.core.state.bans)


def _is_in(node: Node, number: int) -> bool:
    connection = node.core.state.connections.get(number)
    return connection is not None and connection.session is not None


async def reloaded(reload: Callable[[], Awaitable[str]]) -> None:
    """Read the configuration anew because of a signal: what is wrong with it is logged."""
    try:
        _log.warning("%s", await reload())
    except SojournError as error:
        _log.error("The configuration is as it was: %s", error)
    except Exception as error:  # noqa: BLE001 - nobody else is there to hear of it
        _log.error("%s a reload: %s: %s", UNEXPECTED, type(error).__name__, error, exc_info=error)
