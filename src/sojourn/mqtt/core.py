"""The door of the session core: facts in, effects out.

    core.opened(number, peer, fresh_id, now)     a connection was accepted
    core.received(number, data, now)             bytes came on it
    core.admit(number, admission, now)           a client that knocked is let in, or `refuse`d
    core.blocked(number) / core.drained(number, now)   it does not read, it reads again
    core.lost(number, now)                       the connection is gone
    core.time_passed(now)                        at the latest when `core.next_moment()` said
    core.publish(message, now)                   an event came from elsewhere, for local subscribers
    core.custody                                 what else the broker does with single sessions

After each of them `core.effects` holds what is to be done: outputs to write, clients to admit, what was
published and what changed for the sake of other brokers. A publication has reached the local subscribers'
outputs when the call returns. Nothing here waits, draws or looks at a clock.

Reading is arranged for speed: a PUBLISH without properties on a known topic is not decoded at all but cut
(`Publisher.publish_plain`), an acknowledgement is two bytes, and everything else goes through the codec
(`dispatch.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mqtt5 import ConnAckReasonCode as ConnectCode
from mqtt5 import DisconnectReasonCode as Reason
from mqtt5 import PublishPacket

from sojourn.mqtt import costs
from sojourn.mqtt.acknowledging import PLAIN_PUBACK, PUBACK_BYTES, Acknowledger
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.connection import State as Phase
from sojourn.mqtt.conventions import ADVERTISE_TOPIC
from sojourn.mqtt.custody import Custody
from sojourn.mqtt.cutting import SUBSCRIBES, cut
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.dispatch import Dispatch
from sojourn.mqtt.gate import UNLIMITED, Gate
from sojourn.mqtt.greeting import put_before
from sojourn.mqtt.handshake import Handshake
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import Message
from sojourn.mqtt.mqtt3 import Came, packets_of, without_password
from sojourn.mqtt.packets import (
    PUBLISH,
    SECRETIVE,
    PacketError,
    VersionError,
    decode,
    malformed,
    remaining_length,
    too_large,
)
from sojourn.mqtt.publishing import Publisher
from sojourn.mqtt.room import replace_queue
from sojourn.mqtt.session import Session
from sojourn.mqtt.state import Due, State
from sojourn.mqtt.subscribing import Subscriber
from sojourn.mqtt.timekeeping import Timekeeper
from sojourn.mqtt.weighing import SMALLEST_BYTES, weigh

PLAIN_PUBLISH = 0x30
"""The first byte of a PUBLISH of QoS 0 that is not retained."""
ANSWERS = (0x4, 0x5, 0x7)
"""The kinds of packets by which a client answers events: PUBACK, PUBREC, PUBCOMP."""
FORGETTABLE = (PLAIN_PUBLISH, 0xC0)  # QoS 0 and not retained, and PINGREQ: nobody is promised anything


class Core:
    """All MQTT sessions of one broker."""

    def __init__(
        self,
        name: str,
        limits: Limits,
        *,
        shared_subscriptions: bool = True,
        session_expiry_max_s: float | None = None,
    ) -> None:
        """Make the core of a broker; sessions claim to live for `session_expiry_max_s` at the most, too."""
        self.state = State(
            name,
            limits,
            shared_subscriptions=shared_subscriptions,
            session_expiry_max_s=session_expiry_max_s,
        )
        self.effects = self.state.effects
        self.deliverer = Deliverer(self.state)
        self.subscriber = Subscriber(self.state, self.deliverer)
        self.handshake = Handshake(self.state, self.deliverer, self.subscriber)
        self.timekeeper = Timekeeper(self.state, self.handshake)
        self.publisher = Publisher(self.state, self.deliverer)
        self.acknowledger = Acknowledger(self.state, self.deliverer)
        self.dispatch = Dispatch(
            self.state, self.deliverer, self.subscriber, self.handshake, self.acknowledger
        )
        self.custody = Custody(self.state, self.deliverer, self.handshake, self._settle)
        self.gate = Gate(self.state)
        self.kept: list[tuple[int, bytes]] | None = None
        """Packets that were taken in and matter after a restart, each with the number of the last message
        before it; no bytes at all say that the client broke the protocol, perhaps in a packet that is not
        kept. A CONNECT is kept without its password. None where nobody keeps them."""
        self._unsure: list[int] = []
        """Which of them are events of QoS 0 that matter only if somebody stores them."""

    def reconfigure(self, limits: Limits, session_expiry_max_s: float | None) -> None:
        """Take in other limits; what is there already stays, also where it is more than they allow."""
        self.state.reconfigure(limits, session_expiry_max_s)

    # Facts -------------------------------------------------------------------------------------------

    def opened(self, number: int, peer: str, fresh_id: str, now: float) -> Connection:
        """Take a new connection; `fresh_id` is the client identifier it gets if it brings none."""
        deadline_s = now + self.state.limits.connect_timeout_s
        connection = Connection(number, peer, fresh_id, deadline_s)
        connection.seen_s = now
        self.state.connections[number] = connection
        self.state.remind(deadline_s, Due.CONNECT, number)
        return connection

    def received(self, number: int, data: bytes, now: float) -> None:
        """Take bytes that came on a connection."""
        connection = self.state.connections.get(number)
        if connection is None or connection.state is Phase.CLOSED:
            return
        connection.seen_s = now
        waiting, gate, at = self.state.input, self.gate, 0
        if data and gate.slices and (connection.waits or waiting.ring or gate.unsliced <= 0):
            gate.line_up(connection)  # others have something to be read first
        if (data and connection.pieces) or connection.waits:
            waiting.put_by(connection, data, now)
        if connection.waits:
            return
        published, subscribed = self.state.counters.received, self.state.subscriptions
        try:
            if connection.pieces:
                if connection.have < connection.needed or connection.state is Phase.KNOCKING:
                    gate.check_room(connection)
                    return
                data, at = waiting.take_up(connection)
            if connection.is_old and connection.state is Phase.OPEN:
                self._read_old(connection, data, at, now)
            else:
                self._read(connection, data, now, at, costs.SLICE if gate.slices else UNLIMITED)
            if self.state.limits.publishes_per_s_max:
                gate.check_rate(connection, self.state.counters.received - published, now)
        except PacketError as error:
            self._break(connection, error, now)
        except VersionError as error:
            self.handshake.refuse_version(connection, old=error.old)
        gate.unsliced -= costs.ENDING * max(0, subscribed - self.state.subscriptions)  # a session ended
        if self.handshake.wills:
            self._settle(now)

    def begin_turn(self) -> None:
        """Read clients in slices from now on, some at once and the rest in turn (`take_turn`)."""
        self.gate.slices = self.subscriber.greeter.cuts = True
        self.gate.unsliced = costs.UNSLICED_MAX

    def take_turn(self, now: float) -> Connection | None:
        """Return the connection whose turn it is to be read (`received` without further bytes)."""
        return self.state.input.take_turn(self.state, now)

    def received_again(self, number: int, packets: list[tuple[int, bytes]], now: float) -> None:
        """Take packets that were `kept` in an earlier life, under the numbers that messages had then."""
        connection = self.state.connections.get(number)
        broken = malformed("The client broke the protocol.")
        self.subscriber.changes.is_told_again = True
        for sequence, packet in packets:
            if connection is None or connection.state is Phase.CLOSED:
                break
            self.state.sequence = sequence
            try:
                if packet:
                    self._read(connection, packet, now, goes_on=False)
                else:
                    self._break(connection, broken, now)
            except PacketError as error:
                broken = error  # whether it was wrong then too, what was kept next says
            except VersionError as error:
                self.handshake.refuse_version(connection, old=error.old)
        self.subscriber.changes.is_told_again = False
        is_answered = any(packet and packet[0] >> 4 in ANSWERS for _, packet in packets)
        is_open = connection is not None and connection.state is not Phase.CLOSED
        if connection is not None and is_open and is_answered and connection.session is not None:
            self._go_on(connection.session, now)
        self._settle(now)

    def take_kept(self, stored: Sequence[int] = ()) -> list[tuple[int, bytes]]:
        """Return what was `kept`, of events of QoS 0 only those with these numbers; keep anew."""
        kept, unsure = self.kept or [], self._unsure
        self.kept, self._unsure = [], []
        if not unsure:
            return kept
        lasts = [before for before, _ in kept[1:]] + [self.state.sequence]
        forgotten = {
            place
            for place in unsure
            if not any(kept[place][0] < sequence <= lasts[place] for sequence in stored)
        }
        return [one for place, one in enumerate(kept) if place not in forgotten]

    def admit(self, number: int, admission: Admission, now: float) -> bool:
        """Let in a client that knocked; what it sent in the meantime is read next (`Effects.unread`).

        Return whether it is in. If it has gone or is refused, nobody has the session that another broker may
        have given for it (`Admission.state`): `custody.adopt` is for that.
        """
        connection = self.state.connections.get(number)
        if connection is None or connection.connect is None:
            return False
        self.handshake.admit(connection, admission, now)
        self._settle(now)
        is_in = connection.state is Phase.OPEN
        if connection.pieces and is_in:
            connection.needed = 0
            self.effects.unread.append(number)
        return is_in

    def refuse(self, number: int, code: ConnectCode, text: str, reference: str | None = None) -> None:
        """Refuse a client that knocked; `reference` names the server to use instead."""
        connection = self.state.connections.get(number)
        if connection is not None and connection.state is Phase.KNOCKING:
            connection.connect = None
            self.handshake.refuse(connection, code, text, reference)

    def blocked(self, number: int) -> None:
        """Note that a client does not read; what is for it waits."""
        connection = self.state.connections.get(number)
        if connection is not None:
            connection.blocked = True
            connection.direct = False

    def drained(self, number: int, now: float) -> None:
        """Note that a client reads again, and send what waited."""
        connection = self.state.connections.get(number)
        if connection is not None:
            connection.blocked = False
            self.state.input.go_on(connection)
            if connection.session is not None:
                self.deliverer.pump(connection.session, now)
                self._settle(now)

    def overflowed(self, number: int, now: float) -> None:
        """Close a connection for which more waits than may (`Effects.overflowing`)."""
        text = "Messages of QoS 1 or 2 wait beyond the limit and are not read."
        connection = self.state.connections.get(number)
        if connection is not None and connection.state is Phase.OPEN:
            self.state.counters.refused[Reason.QUOTA_EXCEEDED.name.lower()] += 1
            self.handshake.dismiss(connection, Reason.QUOTA_EXCEEDED, text, now)
            self._settle(now)

    def close_for(self, number: int, code: int, text: str, now: float) -> None:
        """Close a connection for a reason (`Effects.dismissals`)."""
        connection = self.state.connections.get(number)
        if connection is None or connection.state is Phase.CLOSED:
            return
        reason = Reason(code)
        self.state.counters.refused[reason.name.lower()] += 1
        if connection.session is None:
            self.handshake.close_silently(connection)
        else:
            self.handshake.dismiss(connection, reason, text, now)
        self.state.input.let_go(connection)
        self._settle(now)

    def lost(self, number: int, now: float) -> None:
        """Note that a connection is gone, whoever closed it."""
        connection = self.state.connections.pop(number, None)
        if connection is None:
            return
        connection.state = Phase.CLOSED
        connection.output.clear()
        self.state.input.let_go(connection)
        if connection.session is not None:
            self.handshake.detach(connection.session, now)
            self._settle(now)

    def time_passed(
        self, now: float, silent: Sequence[int] | None = None, sessions: Sequence[str] | None = None
    ) -> tuple[list[int], list[str]]:
        """Do some of what is due; if more is, `next_moment` says that.

        Return who was closed and which sessions were looked at, to be given when it is told again.
        """
        done = self.timekeeper.time_passed(now, silent, sessions)
        self._settle(now)
        return done

    def publish(self, message: Message, now: float) -> None:
        """Hand an event that came from elsewhere to local subscribers."""
        self.publisher.deliver(message, now)
        self._settle(now)

    def forget_queue(self, session: Session) -> None:
        """Forget what waits for a client: somebody else keeps it, but for retained events."""
        left = [one for one in session.queue if one.kept and one.qos]
        replace_queue(self.state, session, left)

    def stop(self, reference: str | None, now: float) -> None:
        """Tell all clients that the broker stops, and where to go if there is a place."""
        reason = Reason.SERVER_SHUTTING_DOWN if reference is None else Reason.USE_ANOTHER_SERVER
        for connection in list(self.state.connections.values()):
            if connection.state is Phase.OPEN:
                self.handshake.close(connection, reason, "The broker stops.", reference)
            else:
                self.handshake.close_silently(connection)
            if connection.session is not None:
                self.handshake.detach(connection.session, now, keeps_will=True)
        self._settle(now)

    def retain(self, message: Message) -> bool:
        """Keep an event that another broker retained, or forget its topic if it is empty, unless it is old.

        Return whether it was news here, so that it is to be passed on.
        """
        return self.publisher.retain(message)

    def answer(self, number: int, packet: bytes) -> None:
        """Send an answer that was due later (`Effects.subacks`), if its connection is still there."""
        connection = self.state.connections.get(number)
        if connection is not None and connection.state is Phase.OPEN:
            self.deliverer.write(connection, packet)

    def next_moment(self) -> float | None:
        """Return when `time_passed` is to be called at the latest."""
        return self.state.next_moment()

    # Reading -----------------------------------------------------------------------------------------

    def _read(  # noqa: C901, PLR0912, PLR0915  (the hot loop)
        self,
        connection: Connection,
        data: bytes,
        now: float,
        at: int = 0,
        most: int = UNLIMITED,
        *,
        goes_on: bool = True,
    ) -> None:
        """Take complete packets; what is left over waits for more, or for its turn if `most` was worked.

        Answers make room for what waits for the client. That is sent next if it `goes_on`: once for all that
        came together, and not at all if the client left in the end. Nothing else has it sent, such as a ping,
        which is not told again.
        """
        begin, end, left = at, len(data), most
        limits, session = self.state.limits, connection.session
        packet_bytes_max = limits.packet_bytes_max
        light = SMALLEST_BYTES * min(limits.user_properties_max, limits.topic_filters_max)
        if connection.state is Phase.NEW and goes_on:
            packet_bytes_max = min(limits.connect_bytes_max, packet_bytes_max)
        publish_plain, on_pubacks = self.publisher.publish_plain, self.acknowledger.pubacks
        kept, routes, needed, is_answered = self.kept, self.effects.collects, 2, False
        while end - at >= 2 and left > 0:
            first, length, body = data[at], data[at + 1], at + 2
            if first == PLAIN_PUBACK and session is not None:
                stop = on_pubacks(connection, session, data, at, end, left, kept)
                if stop > at:
                    left, is_answered, at = left - (stop - at) // PUBACK_BYTES, True, stop
                    continue
            if length >= 0x80 and end - at > 2 and data[at + 2] < 0x80:
                length, body = length & 0x7F | data[at + 2] << 7, at + 3
            elif length >= 0x80:
                size = remaining_length(data, at, end)
                if size is None:
                    needed = end - at + 1
                    break
                length, body = size
            stop = body + length
            if stop - at > packet_bytes_max:
                raise too_large(packet_bytes_max)
            if stop > end:
                needed = stop - at
                break
            kind = first >> 4
            if stop - at > light and goes_on:
                weigh(data, at, body, stop, limits)
            if kind in SUBSCRIBES and most != UNLIMITED:
                parts = cut(connection, data[at:stop], limits, self.state.retained.count)
                if parts is not None:
                    data = parts + data[stop:]
                    begin, at, end = 0, 0, len(data)
                    continue
            if session is None and connection.state is not Phase.NEW:
                needed = 0
                break  # it waits to be admitted, or it was refused
            opening = self.dispatch.read_first(data[at:stop]) if session is None else None
            if kept is not None and (first not in FORGETTABLE or (routes and first == PLAIN_PUBLISH)):
                if first == PLAIN_PUBLISH:
                    self._unsure.append(len(kept))
                packet = data[at:stop] if opening is None else opening.kept
                if opening is None and kind in SECRETIVE:
                    packet = without_password(packet)
                kept.append((self.state.sequence, packet))
            if session is None:
                assert opening is not None, "the first packet was read"
                self.dispatch.first(connection, opening, now)
                session, packet_bytes_max = connection.session, limits.packet_bytes_max
                left -= costs.OTHER + (stop - at) // costs.CONNECT_BYTES
            elif kind == PUBLISH:
                left -= publish_plain(connection, session, data, at, body, stop, now) or self._on_publish(
                    connection, session, data[at:stop], now
                )
            else:
                self.dispatch.other(connection, session, data[at:stop], now)
                if self.effects.is_void:
                    self._keep_no_void()
                if connection.state is Phase.CLOSED:
                    return
                if connection.rests:
                    data = put_before(connection, data[stop:], goes_on=goes_on)
                    begin, stop, end = 0, 0, len(data)
                is_answered = is_answered or kind in ANSWERS
                left -= self.subscriber.cost if kind in SUBSCRIBES else costs.OTHER
            at = stop
        self.gate.unsliced -= most - left + (at - begin) // costs.INPUT_BYTES
        if is_answered and goes_on and session is not None and (session.queue or session.unsent):
            self._go_on(session, now)
        if at < end and connection.state is not Phase.CLOSED:
            if left <= 0:
                connection.needed = 0
                self.gate.line_up(connection)
                self.state.input.put_by(connection, data, now, at)
            else:
                self.gate.wait_for_more(connection, data[at:] if at else data, needed, now)

    def _read_old(self, connection: Connection, data: bytes, at: int, now: float) -> None:
        """Take packets of MQTT 3.1.1: those of version 5 that say the same are read, and kept."""
        done, connection.translated = connection.translated, 0
        most = costs.SLICE if self.gate.slices else UNLIMITED
        if done:
            came = Came(data[at : at + done], done, 0, None, has_more=at + done < len(data))
        else:
            came = packets_of(data, at, self.state.limits, most, of_bridge=connection.is_bridge)
        self._read(connection, came.packets, now, 0, most)
        at += came.taken
        if connection.state is not Phase.OPEN:
            return
        if connection.waits or came.has_more:  # what is left over has its turn, and the rest with it
            connection.translated = connection.have
            self.gate.line_up(connection)
            rest, start = (data[at:], 0) if connection.pieces else (data, at)
            self.state.input.put_by(connection, rest, now, start)
        elif came.error is not None:
            raise came.error
        elif at < len(data):
            self.gate.wait_for_more(connection, data[at:], came.needed, now)

    def _on_publish(self, connection: Connection, session: Session, frame: bytes, now: float) -> int:
        """Take a PUBLISH that is out of the ordinary; return what it cost (`costs.py`)."""
        packet = decode(frame)
        assert isinstance(packet, PublishPacket)
        # Later packets may rely on an alias; what a client advertises is part of its session.
        is_remembered = packet.topic_alias is not None or packet.topic == ADVERTISE_TOPIC
        if self.kept is not None and frame[0] in FORGETTABLE and is_remembered:
            if self.effects.collects:
                self._unsure.pop()
            else:
                self.kept.append((self.state.sequence, frame))
        cost = self.publisher.publish(connection, session, packet, frame, now)
        if self.effects.is_void:
            self._keep_no_void()
        return cost

    def _keep_no_void(self) -> None:
        """Do not keep a packet that was refused and changed nothing, as if it had never come."""
        self.effects.is_void = False
        if self.kept:
            self.kept.pop()

    def _go_on(self, session: Session, now: float) -> None:
        if session.unsent:  # what was answered although it was not sent again yet need not be
            session.unsent = type(session.unsent)(n for n in session.unsent if n in session.inflight)
        self.deliverer.pump(session, now)

    # What goes wrong ---------------------------------------------------------------------------------

    def _break(self, connection: Connection, error: PacketError, now: float) -> None:
        """Close a connection whose client broke the protocol."""
        assert not self.effects.is_void, "a void packet is taken back before the next is read"
        if self.kept is not None:
            self.kept.append((self.state.sequence, b""))
        self.state.counters.refused[error.reason.name.lower()] += 1
        if connection.session is not None:
            self.state.note_refusal("packet", error.reason.name.lower(), error.text, connection)
            self.handshake.dismiss(connection, error.reason, error.text, now)
        elif connection.state is Phase.NEW and error.reason != Reason.PACKET_TOO_LARGE:
            self.handshake.refuse_broken(connection, error.reason, error.text)
        else:
            self.handshake.close_silently(connection)

    def _settle(self, now: float) -> None:
        """Publish wills that are due."""
        wills = self.handshake.wills
        while wills:
            self.publisher.publish_own(wills.pop(0), now)
