"""What values the fields of a state may have: bytes that hold something else are refused when they are read.

A state that was damaged, or made by hand, may have a sound checksum. Whatever is read is therefore looked at
in its plain form, before any object is made of it, and again where objects refer to others. What is not said
here follows from the field's codec, or from the value that a blank object has there. So a wrong state is one
sentence at the start, and not a traceback an hour later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import msgspec

from sojourn.broker.state_fields import Choice, Field, Name, Numbers, Ref, Refs, RefValues

Qos = Annotated[int, msgspec.Meta(ge=0, le=2)]
Count = Annotated[int, msgspec.Meta(ge=0)]
PacketId = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Interval = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]
Flag = Annotated[int, msgspec.Meta(ge=0, le=1)]
Word = Annotated[str, msgspec.Meta(min_length=1)]
Moment = float | None
"""A time, or none."""
Big = int | list[str]
"""A number of any size (`state_fields.Numbers`)."""
Marks = dict[str, Big] | None
Said = dict[str, bool | int | float | str | list[str] | None]
Pair = tuple[int, int]

SHAPES: dict[str, Any] = {
    "message.topic": Word,
    "message.payload_at": Count,
    "message.id_at": Count,
    "message.qos": Qos,
    "message.expiry": Interval | None,
    "message.properties": tuple[Flag, str | None, str | None, bytes | None, list[tuple[str, str]]] | None,
    "delivery.qos": Qos,
    "delivery.retain": bool,
    "delivery.kept": bool,
    "delivery.message": int,
    "delivery.identifiers": list[int],
    "will.delay_s": float,
    "will.message": int,
    "permissions.publish": list[tuple[list[str | list[str]], bool]] | None,
    "permissions.subscribe": list[tuple[list[str | list[str]], bool]] | None,
    "admission.username": str,
    "admission.may_state": bool,
    "admission.owner": str | None,
    "admission.among_others": bool,
    "admission.until_s": Moment,
    "admission.attributes": Said,
    "admission.state": bytes | None,
    "subscription.text": Word,
    "subscription.pattern": Word,
    "subscription.qos": Qos,
    "subscription.filter_text": str | None,
    "subscription.session": int,
    "subscription.identifiers": list[int],
    "subscription.policy": list[int | float | str | None] | None,
    "session.expires_s": Moment,
    "session.owner": str | None,
    "session.address": str | None,
    "session.previous": str | None,
    "session.left_s": Moment,
    "session.will_s": Moment,
    "session.reminded_s": Moment,
    "session.next_id": PacketId,
    "session.stated": Said,
    "session.advertisements": list[str],
    "session.subscriptions": dict[str, int],
    "session.inflight": dict[PacketId, int | None],
    "session.unsent": list[int],
    "session.queue": list[int],
    "session.received": list[int],
    "connection.connect": bytes | None,
    "connection.until_s": Moment,
    "connection.aliases_in": dict[int, str],
    "connection.aliases_out": dict[str, int],
    "connection.part_codes": list[int],
    "connection.part_codes_beyond": list[int],
    "connection.part_reasons": list[str],
    "connection.pieces": list[bytes],
    "connection.unreleased": list[int],
    "carried.message": int,
    "find.destination": int,
    "find.sender": int,
    "find.client": int,
    "find.epoch": int,
    "find.owner": str | None,
    "find.since_s": Moment,
    "holding.origin": int | None,
    "holding.account": int | None,
    "holding.subscriptions": list[int],
    "holding.fed": list[int],
    "holding.queue": list[int],
    "holding.forwarded": list[int],
    "holding.marks": dict[str, Big],
    "holding.ceiling": dict[str, Big],
    "holding.waits": list[int],
    "holding.askers": dict[int, int],
    "holding.others": list[int],
    "holding.holders": list[int],
    "holding.pending": list[int],
    "holding.acked": list[int],
    "late.epochs": list[int],
    "late.floor": dict[str, Big],
    "late.first": dict[str, Big],
    "past.given": list[tuple[int, int, int]],
    "past.late": list[int],
    "stay.advertisements": list[int],
    "roamer.previous": int | None,
    "roamer.last_epoch": int | None,
    "holding.last_epoch": int | None,
    "moved.last_epoch": int | None,
    "roamer.outstanding": dict[str, dict[int, bool]],
    "roamer.marks": Marks,
    "roamer.held": list[int],
    "wave.silent": list[int],
    "waiting.connection": int,
    "waiting.epoch": int,
    "waiting.previous": int | None,
    "waiting.is_clean": bool,
    "waiting.owned_s": Moment,
    "waiting.admission": int,
    "waiting.marks": Marks,
    "search.named": int | None,
    "search.rumours": dict[int, int],
    "search.silent": list[int],
    "search.asked": list[int],
    "search.confronted": list[int],
    "trail.latest": Pair,
    "trail.debts": dict[int, tuple[int, float]],
    "trail.excuses": dict[int, list[int]],
    "State.refusing": str | None,
    "State.sessions": dict[str, int],
    "State.connections": dict[int, int],
    "State._moments": list[tuple[float, int, int, int | str]],
    "State._aged": list[tuple[float, int, int, int | str]],
    "Counters.dropped": dict[str, int],
    "Counters.refused": dict[str, int],
    "Retained._kept": dict[str, int],
    "Retained._expiring": list[tuple[float, str]],
    "Retained._tombstones": dict[str, tuple[int, str]],
    "Input.by_address": dict[str, int],
    "Input.since": dict[int, float],
    "Bans.known": dict[str, tuple[int, bool]],
    "Network.seen": dict[str, int],
    "Links.down_since": dict[str, float],
    "Links._pieces": dict[str, list[bytes]],
    "Links.far_down": list[tuple[int, int, float]],
    "Names._names": dict[int, str],
    "Channel.births": Annotated[list[tuple[str, int]], msgspec.Meta(min_length=1)],
    "Channel.birth_events": Annotated[list[int], msgspec.Meta(min_length=1)],
    "Channel._out": list[tuple[int, int, bytes]],
    "Channel._pending": Pair | None,
    "Channel._taken": Pair | None,
    "Channel._arrived": Pair | None,
    "Channel._acknowledged_to": Pair | None,
    "Channel._greeting": bytes | None,
    "Channel._hello": bytes | None,
    "Clients.drops": dict[str, int],
    "Clients.stored_unsure": list[int],
    "Clients.roamers": dict[int, int],
    "Clients.giving": list[int],
    "Broker.stays": dict[int, int],
    "Broker.enrolled": dict[int, list[int]],
    "Memory.pasts": dict[int, int],
    "Shares.left": list[tuple[str, int]],
    "holding.gives": dict[int, int],
    "Giving.under_way": list[int],
    "Shelf.main": dict[int, int],
    "Shelf.older": dict[int, list[int]],
    "Shelf.fed": dict[int, int],
    "Shelf.timers": dict[int, int],
    "Store._references": tuple[list[int], list[int]],
    "Store.owners": list[tuple[int, list[int]]] | None,
    "Accounts.by_party": dict[str, int],
    "NeighbourTable._crossed_s": dict[int, float],
    "Timers._running": dict[int, float],
    "Timers._heap": list[tuple[float, int, int]],
    "Arrivals.waiting": dict[int, int],
    "Finder._searches": dict[int, int],
    "Finder._trails": dict[int, int],
    "Finder._heirs": dict[int, tuple[Pair, bool]],
    "Doubts.since_s": dict[int, float],
    "Doubts.asked_s": dict[int, float],
    "Doubts.unmet": list[int],
    "Doubts.silent": dict[int, list[int]],
    "Doubts.held": list[int],
    "Doubts.deferred": dict[int, list[int]],
    "Confirming.waiting": list[tuple[int, bytes]],
    "Confirming._running": list[tuple[int, bytes]],
    "Confirming._silent": list[int],
    "Confirming._passing": list[tuple[int, int, int]],
    "Reconciling.resets": dict[str, int],
    "Reconciling.memories": dict[str, str],
    "Reconciling.forgot": dict[str, int],
    "Reconciling.owed": list[int],
    "Reconciling.stale_ads": list[tuple[Big, list[int]]],
    "Reconciling.stale_subs": list[tuple[Big, list[int]]],
    "Reconciling.stale_links": dict[int, list[Pair]],
    "Pressure.held": dict[int, float],
    "Pressure.frames": dict[str, list[tuple[int, int, bytes]]],
    "Pressure._spoken_of": list[tuple[int, str, float]],
    "Covering.held": list[tuple[Big, dict[int, int]]],
    "Covering.leaving": list[tuple[Big, dict[int, int]]],
}
"""By class and field: the plain form of what may be there."""
for _router in ("Router", "FloodingRouter"):
    SHAPES[f"{_router}.untold"] = int
    for _field in ("ads", "subs"):
        SHAPES[f"{_router}.{_field}"] = dict[int, Big]
        SHAPES[f"{_router}.local_{_field}"] = dict[int, list[int]]

REFERS = {
    "message.policy": "policy",
    "delivery.message": "message",
    "will.message": "message",
    "permissions.publish_if": "filter",
    "permissions.subscribe_if": "filter",
    "admission.permissions": "permissions",
    "subscription.session": "session",
    "subscription.filter": "filter",
    "session.connection": "connection",
    "session.permissions": "permissions",
    "session.subscriptions": "subscription",
    "session.inflight": "delivery",
    "session.queue": "delivery",
    "session.will": "will",
    "connection.session": "session",
    "carried.message": "message",
    "holding.late": "late",
    "holding.account": "account",
    "holding.queue": "carried",
    "holding.forwarded": "carried",
    "holding.askers": "ask",
    "holding.successor": "moved",
    "past.late": "late",
    "waiting.admission": "admission",
    "State.sessions": "session",
    "State.connections": "connection",
    "Retained._kept": "message",
    "Clients.roamers": "roamer",
    "Broker.stays": "stay",
    "Memory.pasts": "past",
    "Giving.under_way": "holding",
    "Shelf.main": "holding",
    "Shelf.older": "holding",
    "Shelf.fed": "holding",
    "Shelf.timers": "holding",
    "Store._references": "carried",
    "Accounts.by_party": "account",
    "Arrivals.waiting": "waiting",
    "Finder._searches": "search",
    "Finder._trails": "trail",
    "Doubts.deferred": "find",
    "Confirming._passing": "wave",
}
"""By class and field: the class of the objects that are referred to."""

_BY_CODEC: dict[type, Any] = {
    Ref: int | None,
    Refs: list[int | None],
    RefValues: dict[Any, int | None],
    Choice: int,
    Name: str,
    Numbers: dict[Any, Any] | None,
}
_BY_TYPE: dict[type, Any] = {bool: bool, int: int, float: float, str: str, bytes: bytes}


def shape_of(owner: str, field: Field, blank: object) -> Any:
    """The plain form of what a field may hold; `blank` has what it holds when nothing was said yet."""
    known = SHAPES.get(f"{owner}.{field.name}")
    if known is not None:
        return known
    if field.codec is not None:
        return _BY_CODEC.get(type(field.codec), Any)
    return _BY_TYPE.get(type(getattr(blank, field.name, None)), Any)


def checker(shape: Any) -> Callable[[Any], Any]:
    """What raises a `ValueError` for plain data of another form, and returns it otherwise."""

    def check(plain: Any) -> Any:
        msgspec.convert(plain, shape, builtin_types=(bytes,))
        return plain

    return check


def check_kind(cls: type, value: Any) -> None:
    """Raise a `TypeError` if an object, or one of a collection, is of another class; None is nobody."""
    if value is None or isinstance(value, cls):
        return
    found: Iterable[Any]
    if isinstance(value, Mapping):
        found = value if any(isinstance(key, cls) for key in value) else value.values()
    elif isinstance(value, (list, tuple)) or hasattr(value, "appendleft"):
        found = value
    else:
        raise TypeError(f"{type(value).__qualname__} stands where {cls.__qualname__} should")
    for one in found:
        check_kind(cls, one)
