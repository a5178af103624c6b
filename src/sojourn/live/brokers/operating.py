"""What operators can ask of a running broker: to read its configuration anew, to kick and to ban."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sojourn.broker import facts
from sojourn.broker.ruling import BAN, KICK, UNBAN
from sojourn.errors import SojournError
from sojourn.live.brokers.control import ControlError, Handler
from sojourn.live.brokers.node import Node
from sojourn.mqtt.bans import SCOPES, WHOM_MAX, network_of

_log = logging.getLogger("sojourn.operators")


def handlers_of(node: Node, reload: Callable[[], Awaitable[str]]) -> dict[str, Handler]:
    """Return what a broker does by command."""

    async def on_reload(_asked: Mapping[str, Any]) -> str:
        return await reload()

    async def on_order(asked: Mapping[str, Any]) -> str:
        return order(node, str(asked["command"]), asked)

    async def on_bans(_asked: Mapping[str, Any]) -> str:
        return "\n".join(f"{one.scope}:{one.whom}" for one in node.core.state.bans if one.banned)

    return {"reload": on_reload, KICK: on_order, BAN: on_order, UNBAN: on_order, "bans": on_bans}


def order(node: Node, verb: str, asked: Mapping[str, Any]) -> str:
    """Kick or ban, or end a ban; say what was done."""
    scope, whom = str(asked.get("scope", "client")), str(asked.get("whom", ""))
    if scope not in SCOPES or not 0 < len(whom) <= WHOM_MAX:
        raise ControlError(f"A {verb} names a client, a user or an address of up to {WHOM_MAX} characters.")
    if scope == "address" and network_of(whom) is None:
        raise ControlError(f"{whom!r} is neither an address nor a network such as 10.0.0.0/8.")
    before = {one for one in node.connections if _is_in(node, one)}
    node.tell(facts.OrderGiven(verb, scope, whom))
    node.flush()
    gone = sum(not _is_in(node, one) for one in before)
    _log.warning("%s of %s %s: %d connections ended", verb, scope, whom, gone)
    said = f"{verb} {scope}:{whom}: {gone} connection{'s'[: gone != 1]} ended at {node.place.name}"
    if verb == BAN and node.keeper is None and node.links is None:
        said += "; it has no store, so the ban ends with its process"
    return said


def _is_in(node: Node, number: int) -> bool:
    connection = node.core.state.connections.get(number)
    return connection is not None and connection.session is not None


async def reloaded(reload: Callable[[], Awaitable[str]]) -> None:
    """Read the configuration anew because of a signal: what is wrong with it is logged."""
    try:
        _log.warning("%s", await reload())
    except SojournError as error:
        _log.error("The configuration is as it was: %s", error)
