"""The client library: publish, subscribe by content, and move from broker to broker without losing an event.

It speaks MQTT 5, by TCP (`mqtt://`), TLS (`mqtts://`) or WebSockets (`ws://`, `wss://`), and works with any
broker; with Sojourn's it gets each event once and each source in order across moves, lost connections and
restarted brokers. What TLS believes and shows is said by `tls`, a context of the module `ssl`. The rules:

- The client carries its own subscriptions and the marks of what it has seen. A broker that knows its session
  goes on with it; one that does not is told everything anew.
- A publish of QoS 1 or 2 returns when the broker has promised to keep the event. What had no answer when a
  connection broke is sent again on the next one, under the same number.
- A connection that is lost is made again with growing pauses, at the broker it was, or where that broker
  sends the client, until `patience_s` has passed. So is one that a broker cannot serve now: a broker that is
  busy, or that cannot reach the one where the client's session is, says so.
- At most `inbox` events wait for the application; the broker is told so and keeps the rest.
- **Cancellation.** Every call may be cancelled, also by `asyncio.timeout`. A publish that is cancelled may
  have been sent or not, like one whose connection broke; a subscription likewise, and asking again does no
  harm. A `next` or `take` that is cancelled has taken no event. A `connect` or `move_to` that is cancelled
  leaves the client without a connection: call either again.
- **Threads.** A client belongs to the event loop that it was connected in, and is not thread-safe. From
  another thread: `asyncio.run_coroutine_threadsafe(client.publish("news", "hello"), loop).result()`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

import mqtt5

from sojourn.interest import Advertisement
from sojourn.live.client.link import (
    NO,
    Address,
    ClientError,
    Connection,
    Link,
    RefusedError,
    unanswered,
)
from sojourn.live.client.outbox import Outbox
from sojourn.live.client.packets import (
    UserProperties,
    attribute_properties,
    check_size,
    hello_properties,
    may_pass,
    publish_packet,
)
from sojourn.live.client.patience import LONGEST_PAUSE_S, Patience, jittered, longer
from sojourn.live.client.quench import Quench
from sojourn.live.client.standing import Standing
from sojourn.live.client.subscriptions import Subscriptions, Wish
from sojourn.mqtt import conventions

REDIRECTIONS_MAX = 5
LOG_MAX = 1_000
PACKET_BYTES_MAX = 256 << 20
"""As large as a packet can be."""
ELSEWHERE = (mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER, mqtt5.ConnAckReasonCode.SERVER_MOVED)

MakePacket = Callable[[UserProperties], mqtt5.PublishPacket]


class Client(Standing):
    """A publisher and subscriber that moves; here in `python -m asyncio`, with two linked brokers.

    >>> from sojourn import Client
    >>> car = Client("mqtt://127.0.0.1:1883", client_id="car-7")
    >>> await car.connect()
    >>> await car.subscribe("speed > 80 AND road = 'A2'")
    >>> await car.publish("cars/9", {"speed": 93}, attributes={"road": "A2"})
    >>> event = await car.next(timeout_s=5)
    >>> event.topic, event.attributes["speed"], event.attributes["road"]
    ('cars/9', 93, 'A2')
    >>> await car.move_to("mqtt://127.0.0.1:1884")  # its session, and what it has not seen, follow it
    >>> [(line.broker, line.ended) for line in car.connections]
    [('B1', 'moved'), ('B2', '')]
    >>> await car.close()
    """

    def __init__(  # noqa: PLR0913 - each is an option of the connection, with a default that serves
        self,
        url: str,
        *,
        client_id: str | None = None,
        session_expiry_s: int = 3600,
        keep_alive_s: int = 30,
        patience_s: float = 60.0,
        inbox: int = 1_000,
        username: str | None = None,
        password: str | None = None,
        tls: ssl.SSLContext | None = None,
        attributes: Mapping[str, Any] | None = None,
        quench: bool = False,
    ) -> None:
        super().__init__(
            client_id or f"sojourn-{uuid.uuid4().hex[:12]}",
            Address.parse(url),
            inbox=inbox,
            patience_s=patience_s,
        )
        self.broker = ""
        """The name of the broker it is connected to, if that is one of Sojourn's."""
        self.resumed = False
        """Whether the brokers knew its session when it connected last."""
        self.dropped = 0
        """Events that found no room while it was away or did not read, as told when it connected last."""
        self._session_expiry_s, self._keep_alive_s = session_expiry_s, keep_alive_s
        self.username = username
        """The name that it gives, with its password."""
        self._password, self._tls = password, tls
        self._attributes = attribute_properties(attributes or {})
        self._subscriptions = Subscriptions()
        self._advertisements: list[str] = []
        self._outbox = Outbox()
        self.quench = Quench() if quench else None
        """What nobody wants is not sent, if the broker says what is wanted (`client_quench.py`)."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the client has connected, and when it has lost its connection."""
        self.on_wait: Callable[[str], None] = lambda _why: None
        """Called with the reason when a broker cannot serve it just now, and is asked again."""
        self._keeper: asyncio.Task[None] | None = None
        self._packet_bytes_max = PACKET_BYTES_MAX
        self._pause_s = 0.0

    # Connecting and moving -----------------------------------------------------------------------------

    async def connect(self, *, patient: bool = True) -> None:
        """Connect, following redirections; raise what stands in the way.

        A broker that says that it cannot serve just now is asked again, unless the caller is not `patient`.
        A client that is connected stays as it is.
        """
        async with self._moving:
            if not self.connected or self._failure is not None:
                await self._leave("connected anew")
                await self._begin()
                await self._connect(self._patience_s if patient else 0.0)

    async def move_to(self, url: str) -> None:
        """Leave this broker for another; what was not settled here is settled there.

        Where nobody is at the other address that is an `UnreachableError`, and the client is then without a
        connection: `move_to` elsewhere, or back. Other calls wait for that until `patience_s` has passed, and
        then say so. Of several moves at once each waits for the one before it.
        """
        address = Address.parse(url)
        async with self._moving:
            await self._leave("moved")
            await self._begin()
            self.address = address
            await self._connect(self._patience_s)

    async def _begin(self) -> None:
        """Be as a client that has no connection yet, and none under way."""
        self._regain_patience()
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])
        self._closing, self._failure = False, None
        self._connected.clear()
        self._inbox.open()

    def vanish(self) -> None:
        """Break the connection without a word, as a radio does; `connect` or `move_to` comes back."""
        link, self._link = self._link, None
        self._connected.clear()
        if link is not None:
            link.close("vanished", abrupt=True)
            self._log_end("vanished")

    async def close(self) -> None:
        """Disconnect; the session stays at the broker until it expires."""
        self._closing = True
        self._regain_patience()
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
        await self._leave("closed")
        self._inbox.close()
        self._fail(ClientError("The client is closed."))

    async def __aenter__(self) -> Self:
        """Connect."""
        await self.connect()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Disconnect."""
        await self.close()

    async def _leave(self, why: str) -> None:
        link, self._link = self._link, None
        self._connected.clear()
        if link is not None:
            link.send(mqtt5.DisconnectPacket(session_expiry_interval=self._session_expiry_s))
            link.close(why)
            self._log_end(why)
        await asyncio.sleep(0)

    async def _connect(self, patience_s: float) -> None:
        patience, has_told = Patience(patience_s), False
        try:
            while not self.connected:
                try:
                    await self._connect_once()
                except RefusedError as error:
                    if not may_pass(error.code):
                        raise
                    if patience_s and not has_told:
                        has_told = True
                        self.on_wait(str(error))
                    if not await patience.lasts():
                        raise
        except BaseException:  # a call that is cancelled leaves the client without a connection too
            self._begin_to_lose_patience()
            raise

    async def _connect_once(self) -> None:
        for _ in range(REDIRECTIONS_MAX):
            link = await Link.open(self.address, self._on_packet, self._on_lost, self._tls)
            connack = await link.greet(self._hello(), self._expect("connect", 0), self.address)
            if connack.reason_code in ELSEWHERE and connack.server_reference:
                link.close("redirected")
                self.address = Address.parse(connack.server_reference.split()[0], self.address)
                continue
            if int(connack.reason_code) >= NO:
                link.close("refused")
                raise RefusedError(
                    f"{self.address} refuses {self.client_id!r}", int(connack.reason_code), connack.reason_str
                )
            self._resume(link, connack)
            return
        raise ClientError(
            f"{REDIRECTIONS_MAX} brokers in a row sent {self.client_id!r} on; check their configuration."
        )

    def _hello(self) -> mqtt5.ConnectPacket:
        previous = self.connections[-1].broker if self.connections else None
        marks = self._inbox.marks_text() if self._inbox.marks else None
        told = (previous, marks, self._advertisements, self._attributes)
        return mqtt5.ConnectPacket(
            self.client_id,
            username=self.username,
            password=None if self._password is None else self._password.encode(),
            clean_start=not self.connections and not self._session_expiry_s,
            keep_alive=self._keep_alive_s,
            session_expiry_interval=self._session_expiry_s,
            receive_max=self._inbox.limit,
            user_properties=hello_properties(*told, quench=self.quench is not None),
        )

    def _resume(self, link: Link, connack: mqtt5.ConnAckPacket) -> None:
        """Go on with the session on a new connection."""
        self._link = link
        given = dict(connack.user_properties)
        self.broker = given.get(conventions.BROKER, "")
        self.connections.append(Connection(str(self.address), self.broker, time.time()))
        del self.connections[:-LOG_MAX]
        keep_alive = connack.server_keep_alive
        link.keep_alive(self._keep_alive_s if keep_alive is None else keep_alive)
        self._packet_bytes_max = connack.max_packet_size or PACKET_BYTES_MAX
        self.resumed = connack.session_present
        told = given.get(conventions.DROPPED, "")
        self.dropped = int(told) if told.isdecimal() else 0
        if not connack.session_present:
            self._half_received.clear()
            for subscription in self._subscriptions.packets:
                link.send(subscription)
        self._outbox.resume(link, connack.receive_max, known=connack.session_present)
        self._connected.set()
        if self.quench is not None:
            self.quench.connected(answers=conventions.QUENCH in given)
        self.on_change()

    def _on_lost(self, link: Link, why: str) -> None:
        if link is not self._link:
            if self._link is None:
                self._answers.refuse("connect", unanswered(self.address, why))
            return
        self._link = None
        self._connected.clear()
        self._log_end(why)
        self.on_change()
        if not self._closing and self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        """Try again with growing pauses until patience is at an end."""
        until = time.monotonic() + self._patience_s
        last = self.connections[-1]
        if (last.until or 0.0) - last.since > LONGEST_PAUSE_S:
            self._pause_s = 0.0  # only a connection that lasted is a reason to come back at once
        while True:
            await asyncio.sleep(jittered(self._pause_s))
            self._pause_s = longer(self._pause_s)
            try:
                await self._connect_once()
            except (OSError, ClientError, TimeoutError) as error:
                if time.monotonic() > until or (isinstance(error, RefusedError) and not may_pass(error.code)):
                    self._keeper = None
                    self._give_up(error)
                    return
            else:
                self._keeper = None
                return

    def _log_end(self, why: str) -> None:
        if self.connections and self.connections[-1].until is None:
            self.connections[-1].until = time.time()
            self.connections[-1].ended = why

    # Subscribing ---------------------------------------------------------------------------------------

    async def subscribe(
        self,
        filter: str = "",  # noqa: A002 - what it is
        *,
        topic: str = "#",
        qos: int = 1,
        keep: str | None = None,
        expiry_s: float | None = None,
        budget_bytes: int | None = None,
        replace: bool = False,
    ) -> None:
        """Ask for the events that match a filter (an expression over attributes) and a topic filter.

        Returns when every broker in reach knows of it. Of the events that come while the client is away the
        broker keeps all, or those that the options leave:

        - `keep`: "last:KEY" keeps the latest for each value of an attribute, "highest:NAME" or "lowest:NAME"
          the one with the highest or lowest value;
        - `expiry_s`: those that are not older than so many seconds;
        - `budget_bytes`: the latest that have room in so many bytes.

        A second subscription to the same topic filter with another filter is refused: it would take the
        place of the first. Say `replace=True` where that is meant.
        """
        wish = Wish(
            filter=filter, topic=topic, qos=qos, keep=keep, expiry_s=expiry_s, budget_bytes=budget_bytes
        )
        if not replace:
            wish.check_room(self._subscriptions.wish_for(topic))
        packet = wish.packet(self._outbox.packet_id())
        self._inbox.subscribed()
        answer = await self._ask(packet, "suback")
        code = int(answer.reason_codes[0])
        if code >= NO:
            raise RefusedError(
                f"{self.address} refuses the subscription to {topic!r}", code, answer.reason_str
            )
        self._subscriptions.confirmed(wish, packet)

    async def unsubscribe(self, *, topic: str = "#") -> None:
        """Take back the subscription to a topic filter."""
        await self._ask(mqtt5.UnsubscribePacket(self._outbox.packet_id(), [topic]), "unsuback")
        self._subscriptions.dropped(topic)

    @property
    def quenched(self) -> int:
        """Events that were not sent because nobody wanted them."""
        return self.quench.quenched if self.quench is not None else 0

    # Publishing ----------------------------------------------------------------------------------------

    async def publish(
        self,
        topic: str,
        payload: bytes | str | Mapping[str, Any] = b"",
        *,
        attributes: Mapping[str, Any] | None = None,
        qos: int = 1,
        retain: bool = False,
        policy: str = "",
        expires_s: int | None = None,
        number: int | None = None,
    ) -> None:
        """Publish an event: a mapping goes as JSON, `attributes` as user properties.

        With QoS 1 and 2 it returns when the broker has promised to keep the event. A `policy` says which
        subscribers may get it, by the attributes that they have there. Its `number` is given by those who
        send the same event elsewhere too (`replicas.py`) and must grow; by default the client counts.

        >>> async with Client("mqtt://127.0.0.1:1883", attributes={"role": "medic"}) as medic:
        ...     await medic.subscribe(topic="ward/3")
        ...     await medic.publish("ward/3", {"pulse": 140}, policy="role = 'medic'")
        ...     (await medic.next(timeout_s=5)).json()
        {'pulse': 140}
        """
        properties = attribute_properties(attributes or {})
        if policy:
            properties.append((conventions.POLICY, policy))
        make = partial(publish_packet, topic, payload, qos=qos, retain=retain, expires_s=expires_s)
        send = partial(self._publish, make, properties, number)
        if self.quench is None or retain or await self.quench.passes(make(properties), send, self.connected):
            await send()

    async def pass_on(self, topic: str, payload: bytes, properties: UserProperties, *, number: int) -> None:
        """Publish what somebody else published, with its properties, under a number that must grow."""
        await self._publish(partial(publish_packet, topic, payload, qos=1), list(properties), number)

    async def _publish(self, make: MakePacket, properties: UserProperties, number: int | None) -> None:
        """Number an event, send it, and wait for the answer if there will be one."""
        packet_id, answer = 0, None
        try:
            async with self._outbox.turn:
                number = self._outbox.number() if number is None else number
                packet = make([*properties, (conventions.NUMBER, f"{self.client_id}:{number}")])
                check_size(packet, self._packet_bytes_max, str(self.address))
                await self._online(self._patience_s)
                if int(packet.qos):
                    packet, packet_id = await self._outbox.enter(packet)
                    answer = self._expect("publish", packet_id)
                if self._link is not None:
                    self._link.send(packet)
                    await self._link.drained()
            code, reason = await answer if answer is not None else (0, None)
        finally:
            if packet_id:
                self._outbox.settle(packet_id)
        if code >= NO:
            raise RefusedError(f"{self.address} refuses the event on {packet.topic!r}", code, reason)

    async def advertise(self, advertisement: str) -> None:
        """Say what this client will publish, in the language of filters; it takes effect at once.

        >>> async with Client("mqtt://127.0.0.1:1883") as thermometer:
        ...     await thermometer.advertise("topic = 'room/7' AND celsius >= -20 AND celsius <= 60")
        ...     await thermometer.publish("room/7", attributes={"celsius": 21.5}, retain=True)
        """
        self._advertisements.append(str(Advertisement.parse(advertisement)))
        if self._link is not None:
            make = partial(publish_packet, conventions.ADVERTISE_TOPIC, self._advertisements[-1])
            await self._publish(make, [], None)

    # Packets -------------------------------------------------------------------------------------------

    def _on_packet(self, link: Link, packet: Any) -> None:
        match packet:
            case mqtt5.PublishPacket() if (
                self.quench is not None and packet.topic == conventions.QUENCH_TOPIC
            ):
                self.quench.told(packet.payload or b"", early=link is not self._link)
            case mqtt5.PublishPacket():
                self._on_publish(link, packet)
            case mqtt5.PubRecPacket() if int(packet.reason_code) < NO:
                self._outbox.released.add(packet.packet_id)
                link.send(mqtt5.PubRelPacket(packet.packet_id))
            case mqtt5.PubRelPacket():
                self._on_release(link, packet)
            case mqtt5.DisconnectPacket():
                self._on_disconnect(link, packet)
            case _:
                self._answers.hear(packet)

    def _on_disconnect(self, link: Link, packet: mqtt5.DisconnectPacket) -> None:
        if packet.server_reference:
            self.address = Address.parse(packet.server_reference.split()[0], self.address)
        if packet.reason_code == mqtt5.DisconnectReasonCode.SESSION_TAKEN_OVER and link is self._link:
            # Somebody else uses this id: to fight over it would go on for ever.
            self._closing = True
            self._give_up(ClientError(f"Another connection took over the client id {self.client_id!r}."))
        link.close(packet.reason_str or packet.reason_code.name.replace("_", " ").lower())
