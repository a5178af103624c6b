"""Messages between brokers as bytes.

A core names clients and interests by the small numbers of its own process. On the wire a client is its
identifier and an interest its canonical text, so that brokers share nothing but the configuration: the number
of a broker is its place in it. A `Translator` knows both names; `Wire` turns messages into the bodies of a
channel's frames and back, each kind with exactly the fields of its class.

Events are the business of `carried.py`.

Whatever a peer sends is checked: it becomes a message or a `WireError`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Protocol

import msgspec

from sojourn.broker.carried import (
    SEQUENCE_MAX,
    EventFrame,
    RunFrame,
    WireError,
    carried,
    event_frame,
    run_frame,
    run_of,
)
from sojourn.broker.messages import (
    Echo,
    Offer,
    Order,
    Part,
    Reach,
    Retain,
    RetainAsk,
    Roll,
    Run,
    Settled,
    Slow,
    Spread,
    Status,
    SyncEnd,
    Wave,
)
from sojourn.errors import SojournError
from sojourn.mobility.finding_messages import EVERYBODY, Cleared, Find, Forgot, Found
from sojourn.mqtt import packets
from sojourn.routing import messages
from sojourn.routing.messages import Kind


class Translator(Protocol):
    """Who knows the numbers of this process and the names that all brokers share."""

    def client_name(self, number: int, /) -> str:
        """Return the identifier of a client."""

    def client_number(self, name: str, /) -> int:
        """Return the number of a client, a new one if it was never heard of."""

    def subscription_text(self, number: int, /) -> str:
        """Return a subscription as text."""

    def subscription_number(self, text: str, /) -> int:
        """Return the number of a subscription, entered if it is new."""

    def advertisement_text(self, number: int, /) -> str:
        """Return an advertisement as text."""

    def advertisement_number(self, text: str, /) -> int:
        """Return the number of an advertisement, entered if it is new."""


MESSAGES: tuple[type, ...] = (
    messages.Advertise,
    messages.Unadvertise,
    messages.Subscribe,
    messages.Unsubscribe,
    messages.Prepare,
    messages.Release,
    messages.Copy,
    messages.Activate,
    messages.Activated,
    messages.Deactivate,
    messages.Delete,
    messages.Moved,
    messages.Forward,
    messages.ForwardEnd,
    messages.Ask,
    messages.Context,
    Find,
    Found,
    Retain,
    Spread,
    Status,
    SyncEnd,
    Wave,
    Echo,
    Slow,
    Part,
    Reach,
    RetainAsk,
    Order,
    Settled,
    Cleared,
    Forgot,
    Roll,
    Offer,
)
_TYPES: dict[str, Any] = {
    "interest": str,
    "client": str,
    "subscriptions": list[str] | None,
    "advertisements": list[str],
    "others": list[int],
    "holders": list[int],
    "waits_for": list[int],
    **dict.fromkeys(("source", "verb", "scope", "whom"), str),
    "done": tuple[int, ...],
    "declined": tuple[int, ...],
    "marks": dict[str, int] | None,
    "publications": list[EventFrame],
    "state": bytes | None,
    "report": bytes,
    "joined": list[list[str]],
    "left": list[str],
    "piece": bytes,
    **dict.fromkeys(("is_last", "up", "found", "for_good", "wants", "keep"), bool),
    **dict.fromkeys(("everywhere", "present", "holds"), bool),
    "since_s": float | None,
    **dict.fromkeys(("owner", "refused", "party"), str | None),
    **dict.fromkeys(("lost", "last_epoch"), int | None),
}
"""By field: its type on the wire; a field that is not named is a whole number."""
_MAY_BE_MISSING = (
    ("marks", int(Kind.MOVED)),
    ("subscriptions", int(Kind.ACTIVATE)),
    ("state", Found.kind),
    ("owner", Find.kind),
    ("owner", Offer.kind),
    ("since_s", Find.kind),
    ("refused", Found.kind),
    ("since_s", Found.kind),
    ("party", int(Kind.ACTIVATE)),
    ("lost", Cleared.kind),
    ("last_epoch", int(Kind.MOVED)),
)
"""The fields that a message of some kind may go without."""
_ADDED = ("owner", "since_s", "refused", "party", "lost", "last_epoch")
"""Fields that frames in the journals of earlier builds lack; they are last, and None then."""
_ABOUT_ADVERTISEMENTS = (int(Kind.ADVERTISE), int(Kind.UNADVERTISE))


def _frame_type(message_type: Any) -> Any:
    fields: list[Any] = []
    for field in dataclasses.fields(message_type):
        default = (None,) if field.name in _ADDED else ()
        fields.append((field.name, _TYPES.get(field.name, int), *default))
    return msgspec.defstruct(
        f"{message_type.__name__}Frame",
        fields,
        array_like=True,
        frozen=True,
        tag_field="kind",
        tag=int(message_type.kind),
    )


class Wire:
    """Messages to bytes and back, for one broker."""

    _FRAMES: ClassVar[dict[int, Any]] = {int(cls.kind): _frame_type(cls) for cls in MESSAGES}  # type: ignore[attr-defined]  # every message has a kind
    _MESSAGES: ClassVar[dict[int, Any]] = {int(cls.kind): cls for cls in MESSAGES}  # type: ignore[attr-defined]  # every message has a kind

    def __init__(self, translator: Translator, brokers: int) -> None:
        self._names = translator
        self._brokers = brokers
        self._encode = msgspec.msgpack.Encoder().encode
        union: Any = EventFrame | RunFrame
        for frame in self._FRAMES.values():
            union = union | frame
        self._decode = msgspec.msgpack.Decoder(union).decode

    def grow(self, brokers: int) -> None:
        """Take numbers of so many brokers from now on."""
        self._brokers = brokers

    def __reduce__(self) -> tuple[Any, ...]:
        return Wire, (self._names, self._brokers)

    def encode(self, message: Any, now: float) -> bytes:
        """Return the body of the frame that carries a message."""
        if message.kind == Kind.PUBLISH:
            return self._encode(event_frame(message, now))
        if message.kind == Run.kind:
            return self._encode(run_frame(message))
        frame = self._FRAMES[message.kind]
        values = [
            self._out(message.kind, name, getattr(message, name), now) for name in frame.__struct_fields__
        ]
        return self._encode(frame(*values))

    def decode(self, body: bytes, now: float) -> Any:
        """Return the message that a peer sent, or refuse it."""
        message = self.read(body, now)
        if isinstance(message, WireError):
            raise message
        return message

    def read(self, body: bytes, now: float) -> Any:
        """Return the message that a peer sent, or a `WireError` that says why it is none."""
        try:
            frame: Any = self._decode(body)
            if isinstance(frame, EventFrame):
                return carried(frame, now)
            if isinstance(frame, RunFrame):
                return run_of(frame, now)
            message_type = self._MESSAGES[frame.__struct_config__.tag]
            fields = {
                name: self._in(message_type.kind, name, getattr(frame, name), now)
                for name in frame.__struct_fields__
            }
            return message_type(**fields)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return WireError(f"A peer sent what is no message: {error}.")
        except packets.PacketError as error:
            return WireError(f"A peer sent an event that is no MQTT packet: {error.text}")
        except WireError as error:
            return error
        except SojournError as error:
            return WireError(f"A peer sent a message that cannot be used: {error}")

    def _out(self, kind: int, name: str, value: Any, now: float) -> Any:
        names = self._names
        if name == "client":
            return names.client_name(value)
        if name == "interest":
            if kind in _ABOUT_ADVERTISEMENTS:
                return names.advertisement_text(value)
            return names.subscription_text(value)
        if name == "subscriptions" and value is not None:
            return [names.subscription_text(number) for number in value]
        if name == "advertisements":
            return [names.advertisement_text(number) for number in value]
        if name == "publications":
            return [event_frame(publication, now) for publication in value]
        if name == "marks" and value is not None:
            # Some are what a client says that it has seen, which may be any number.
            return {source: max(0, min(mark, SEQUENCE_MAX)) for source, mark in value.items()}
        return value

    def _in(self, kind: int, name: str, value: Any, now: float) -> Any:
        names = self._names
        lowest = EVERYBODY if name == "destination" and kind == Find.kind else 0
        if value is None and (name, kind) not in _MAY_BE_MISSING:
            raise WireError(f"A peer sent a message of kind {kind} without its {name}.")
        if (
            name in {"destination", "sender", "holder", "held_at", "origin", "peer"}
            and not lowest <= value < self._brokers
        ):
            raise WireError(f"A peer named broker number {value}; there are {self._brokers}.")
        if name in ("stamp", "since_s"):
            value = _checked_date(name, value)
        if name == "client":
            return names.client_number(value)
        if name == "interest":
            if kind in _ABOUT_ADVERTISEMENTS:
                return names.advertisement_number(value)
            return names.subscription_number(value)
        if name == "subscriptions" and value is not None:
            return tuple(names.subscription_number(text) for text in value)
        if name == "advertisements":
            return tuple(names.advertisement_number(text) for text in value)
        if name == "publications":
            return tuple(carried(frame, now) for frame in value)
        if name in {"others", "holders", "waits_for"}:
            if not all(0 <= number < self._brokers for number in value):
                raise WireError(f"A peer named brokers {value}; there are {self._brokers}.")
            return tuple(value)
        return value


def _checked_date(name: str, value: Any) -> Any:
    if value is not None and not (math.isfinite(value) and 0 <= value <= SEQUENCE_MAX):
        raise WireError(f"A peer sent {value} as {name}.")
    return value


def kind_of(body: bytes) -> int:
    """The kind of message that a frame carries: the first thing in its array."""
    return body[1]
