"""Messages: one publication, and the forms in which it goes out.

A message keeps the packet it came in. Most subscribers get those very bytes: at QoS 0 all of them, at QoS 1
and 2 all but the packet identifier. Where options ask for another form (a lower QoS, subscription
identifiers, the retain flag, a topic alias, a shortened expiry) that form is encoded once and kept with the
message for all who want the same. A message never changes; its forms are a cache.
"""

from __future__ import annotations

import math

import mqtt5
import msgspec
from msgspec.structs import replace

from sojourn.interest import Event, Policy
from sojourn.interest.values import Scalar
from sojourn.mqtt import mqtt3
from sojourn.mqtt.conventions import POLICY, SEQUENCE, SOURCE
from sojourn.mqtt.payload import LARGE, Data

QOS = (mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE)
FORMS_MAX = 16
"""Forms of one message that are kept, besides the one it came in."""
FORM_BYTES_MAX = 65_536
"""Larger forms are made anew for each who asks."""


class Properties(msgspec.Struct, frozen=True):
    """What a message carries besides topic and payload; passed on unchanged."""

    payload_format: int = 0
    content_type: str | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    user: tuple[tuple[str, str], ...] = ()


PLAIN = Properties()
TOPIC_MAX = 256
"""Characters of a topic that count no more than its bytes in the packet, if they are all ASCII."""
TEXT, BYTES, PAIR = 49, 33, 72
"""What a text, other bytes and a user property take besides what they say, about."""
POLICY_CHAR, POLICY_ALTERNATIVE, POLICY_STEP = 16, 250, 60
"""What a policy takes, about: by its text, its alternatives, and the attributes that each speaks of."""


class Form(msgspec.Struct, frozen=True):
    """An encoded packet: whole at QoS 0, else in two parts, between which the packet identifier goes."""

    head: bytes
    tail: bytes
    size: int
    """Bytes of the whole packet."""
    payload: Data = b""
    """What comes behind these, where it is large; else it is in them."""


class Message(msgspec.Struct, eq=False):
    """One publication.

    One is made for every event: as a struct of msgspec in a quarter of the time that `__init__` would take.
    """

    topic: str
    frame: bytes
    """The packet it came in, or one written for it; without alias and subscription identifiers."""
    payload_at: int
    id_at: int
    """Where the packet identifier stands in the frame; of no meaning at QoS 0."""
    qos: int
    arrived_s: float
    publisher: str = ""
    """The client that sent it, for subscriptions that want nothing of their own."""
    source: str = ""
    sequence: int = 0
    properties: Properties = PLAIN
    retain: bool = False
    expiry: int | None = None
    """Seconds to live at arrival, or None; see `expires_at`."""
    expires_s: float = math.inf
    policy: Policy | None = None
    address: str = ""
    """The member of a shared subscription that it is for (`members.py`); empty if it is for all."""
    party: str = ""
    """On whose account it is retained (`shares.py`); empty for nobody's, or where it is not."""
    attributes: tuple[dict[str, Scalar], set[str]] | None = None
    """Its attributes by path and the paths of objects, if somebody asked just now (`content.py`)."""
    event: Event | None = None
    """The same as an event."""
    weighed: int = 0
    """Its `size`, or 0 while nobody has asked: most events of QoS 0 are handed on and never kept."""
    _plain: Form | None = None
    _forms: dict[tuple[object, ...], Form] | None = None

    @property
    def size(self) -> int:
        """Bytes it takes where it is kept, about; not those that are sent.

        Its packet, and what was read of that and takes more than it did there. This follows from what it
        says alone, so that all brokers count the same, and again after a restart.
        """
        return self.weighed or self._weigh()

    def _weigh(self) -> int:
        size, topic = len(self.frame), self.topic
        if len(topic) > TOPIC_MAX or not topic.isascii():
            size += _text_bytes(topic)
        if self.properties is PLAIN:
            self.weighed = size
            return size
        properties = self.properties
        if properties.content_type is not None:
            size += _text_bytes(properties.content_type)
        if properties.response_topic is not None:
            size += _text_bytes(properties.response_topic)
        if properties.correlation is not None:
            size += BYTES + len(properties.correlation)
        for name, text in properties.user:
            size += PAIR + _text_bytes(name) + _text_bytes(text)
        if self.policy is not None:
            size += POLICY_CHAR * sum([len(text) for name, text in properties.user if name == POLICY])
            for one in self.policy.condition.conjunctions:
                size += POLICY_ALTERNATIVE + POLICY_STEP * len(one.constraints)
        self.weighed = size
        return size

    def addressed(self, address: str, source: str, sequence: int, said: tuple[str, str] | None) -> Message:
        """Return the same message for one member of a shared subscription alone, under a number of its own.

        What else is `said` goes along as a user property.
        """
        if said is None:
            frame, payload_at, id_at, properties = self.frame, self.payload_at, self.id_at, self.properties
        else:
            properties = replace(self.properties, user=(*self.properties.user, said))
            frame, id_at, payload_at = write_publish(
                self.topic, self.payload, qos=self.qos, expiry=self.expiry, properties=properties
            )
        return Message(
            self.topic,
            frame,
            payload_at,
            id_at,
            self.qos,
            self.arrived_s,
            self.publisher,
            source,
            sequence,
            properties,
            self.retain,
            self.expiry,
            self.expires_s,
            self.policy,
            address,
        )

    @property
    def payload(self) -> bytes:
        """The payload's bytes."""
        return self.frame[self.payload_at :]

    def form(
        self,
        qos: int,
        now: float,
        *,
        retain: bool = False,
        identifiers: tuple[int, ...] = (),
        alias: int = 0,
        with_topic: bool = True,
        numbered: bool = False,
    ) -> Form:
        """Return the packet for these options, encoded at most once for all who ask the same."""
        expiry = self.expiry
        special = alias or identifiers or numbered or self.frame[0] != 0x30 | qos << 1 | retain
        if not special and expiry is None:
            return self._plain or self._cut()
        if expiry is not None:
            # Whole seconds in which it lay here are gone (MQTT 5, section 3.3.2.3.3).
            expiry = max(min(1, expiry), expiry - int(now - self.arrived_s))
            if not special and expiry == self.expiry:
                return self._plain or self._cut()
        key = (qos, retain, identifiers, alias, with_topic, numbered, expiry)
        if self._forms is None:
            self._forms = {}
        found = self._forms.get(key)
        if found is None:
            found = self._encode(qos, expiry, retain, identifiers, alias, with_topic, numbered)
            self._keep(self._forms, key, found)
        return found

    @staticmethod
    def _keep(forms: dict[tuple[object, ...], Form], key: tuple[object, ...], form: Form) -> None:
        """Keep a form for others; whoever asks for ever new ones of a message fills no memory with them."""
        if form.size - len(form.payload) > FORM_BYTES_MAX:
            return
        if len(forms) >= FORMS_MAX:
            del forms[next(iter(forms))]
        forms[key] = form

    def old_form(self, qos: int, *, retain: bool) -> Form:
        """Return the packet for clients of MQTT 3.1.1, encoded once for all of them."""
        if self._forms is None:
            self._forms = {}
        key = (qos, retain)  # a longer one is of version 5
        found = self._forms.get(key)
        if found is None:
            large, length = self._large, len(self.frame) - self.payload_at
            head = mqtt3.publish_head(self.topic, qos, length, retain=retain)
            size = len(head) + length + (2 if qos else 0)
            if large:
                found = Form(head, b"", size, large)
            else:
                found = Form(head, self.payload, size) if qos else Form(head + self.payload, b"", size)
            self._keep(self._forms, key, found)
        return found

    @property
    def _large(self) -> Data:
        """The payload as it lies in the frame if it is large, else nothing."""
        is_large = len(self.frame) - self.payload_at >= LARGE
        return memoryview(self.frame)[self.payload_at :] if is_large else b""

    def _cut(self) -> Form:
        """Return the packet that it came in as a form."""
        frame = self.frame
        if frame[0] & 0x06:
            large = self._large
            tail = frame[self.id_at + 2 : self.payload_at if large else None]
            form = Form(frame[: self.id_at], tail, len(frame), large)
        else:
            form = Form(frame, b"", len(frame))
        if len(frame) <= FORM_BYTES_MAX:
            self._plain = form
        return form

    def _encode(
        self,
        qos: int,
        expiry: int | None,
        retain: bool,  # noqa: FBT001 - quicker by place
        identifiers: tuple[int, ...],
        alias: int,
        with_topic: bool,  # noqa: FBT001 - quicker by place
        numbered: bool,  # noqa: FBT001 - quicker by place
    ) -> Form:
        topic = self.topic if with_topic else ""
        properties = self.properties
        if numbered:
            number = ((SOURCE, self.source), (SEQUENCE, str(self.sequence)))
            properties = replace(properties, user=properties.user + number)
        large = self._large
        frame, id_at, payload_at = write_publish(
            topic,
            b"" if large else self.payload,
            qos=qos,
            retain=retain,
            expiry=expiry,
            properties=properties,
            identifiers=identifiers,
            alias=alias,
        )
        if large:
            begin = id_at - 2 - len(topic.encode())
            frame = frame[:1] + mqtt3.written_length(payload_at - begin + len(large)) + frame[begin:]
            id_at += len(frame) - payload_at
        if not qos:
            return Form(frame, b"", len(frame) + len(large), large)
        return Form(frame[:id_at], frame[id_at + 2 :], len(frame) + len(large), large)


def _text_bytes(text: str) -> int:
    """What a text takes in memory, about: its widest character makes all others as wide."""
    width = 1
    if not text.isascii() and len(text.encode("latin-1", "ignore")) < len(text):
        width = 4 if len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text) else 2
    return TEXT + width * len(text)


def write_publish(
    topic: str,
    payload: bytes,
    *,
    qos: int,
    retain: bool = False,
    expiry: int | None = None,
    properties: Properties = PLAIN,
    identifiers: tuple[int, ...] = (),
    alias: int = 0,
) -> tuple[bytes, int, int]:
    """Write a PUBLISH; return it with the places of its packet identifier and of its payload."""
    frame = mqtt5.PublishPacket(
        topic,
        payload,
        qos=QOS[qos],
        retain=retain,
        packet_id=1 if qos else None,
        payload_format_indicator=properties.payload_format,
        message_expiry_interval=expiry,
        content_type=properties.content_type,
        response_topic=properties.response_topic,
        correlation_data=properties.correlation,
        subscription_ids=list(identifiers),
        topic_alias=alias or None,
        user_properties=list(properties.user),
    ).write()
    at = 2
    while frame[at - 1] >= 0x80:
        at += 1
    return frame, at + 2 + len(topic.encode()), len(frame) - len(payload)


def new_message(  # noqa: PLR0913  (one argument a part)
    topic: str,
    payload: bytes,
    *,
    qos: int,
    now: float,
    publisher: str = "",
    retain: bool = False,
    expiry: int | None = None,
    properties: Properties = PLAIN,
    policy: Policy | None = None,
) -> Message:
    """Make a message that did not come in a packet of its own, as a will or one from another broker."""
    frame, id_at, payload_at = write_publish(topic, payload, qos=qos, expiry=expiry, properties=properties)
    return Message(
        topic,
        frame,
        payload_at,
        id_at,
        qos,
        now,
        publisher,
        retain=retain,
        properties=properties,
        expiry=expiry,
        expires_s=expires_at(now, expiry),
        policy=policy,
    )


def expires_at(arrived_s: float, expiry: int | None) -> float:
    """Return when a message ends that came then and has so many seconds to live.

    Life is counted in whole seconds: what has none left is sent within this one, or not at all.
    """
    return math.inf if expiry is None else arrived_s + (expiry or 1)
