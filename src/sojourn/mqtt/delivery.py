"""From a message to the outputs and queues of its subscribers.

`deliver` is the hot path: for a group of sessions that want the same form, one look at each connection and
one append. Everything else goes through `hand`, which knows about absence, full windows, slow readers, topic
aliases, packet sizes and expiry. Order is kept because whoever has something waiting is not served directly.

What waits for a client and what it was sent and has not acknowledged have a limit together, as have those of
all clients of an address, and of all clients (`room.py`). Beyond it a broker drops what comes, and counts it;
a client that neither reads nor lets go of QoS 1 and 2 messages is disconnected then. Nobody else notices.
In a network the limit on QoS 1 and 2 is that of the store that the brokers have for clients on the move, and
a session drops nothing of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from mqtt5 import PubRelPacket

from sojourn.interest import Filter
from sojourn.mqtt.connection import Connection, State
from sojourn.mqtt.judging import Judges
from sojourn.mqtt.members import addressee
from sojourn.mqtt.message import Message
from sojourn.mqtt.packets import PACKET_ID
from sojourn.mqtt.payload import LARGE, Data
from sojourn.mqtt.queue_policies import FITTING_MAX
from sojourn.mqtt.room import change_inflight, change_queued, replace_queue, why_full
from sojourn.mqtt.session import Delivery, Session, Subscription, waits_for_nothing
from sojourn.mqtt.state import State as Shared
from sojourn.mqtt.thinning import Thinning
from sojourn.mqtt.topic_tree import Group, Route, Share

TOO_LARGE = "larger than the client takes"
AT_ONCE_MAX = 4_096
"""Messages that are sent to one client at once, however short they are."""


class Deliverer:
    """Hands messages to sessions."""

    def __init__(self, shared: Shared) -> None:
        self.shared, self._judges = shared, Judges()
        self.thinning = Thinning(shared, partial(self._fitting, most=FITTING_MAX))

    # The fast way ------------------------------------------------------------------------------------

    def deliver(self, message: Message, route: Route, now: float) -> None:
        """Hand a message to everybody it is for."""
        for group in route.groups:
            self._deliver_group(message, group, now)
        if not route.filters:
            if route.picky or route.several or route.shares:
                self._deliver_chosen(message, route, frozenset(), now)
            return
        passed = self.shared.filters.passed(message, route.filters, route.tests)
        for condition in passed:
            for group in route.conditional.get(condition, ()):
                self._deliver_group(message, group, now)
        if route.picky or route.several or route.shares:
            self._deliver_chosen(message, route, frozenset(passed), now)

    def _deliver_group(self, message: Message, group: Group, now: float) -> None:
        if message.policy is not None:
            self._deliver_guarded(message, group, now)
        elif message.qos == 0 or group.qos == 0:
            self._deliver_once_at_most(message, group, now)
        else:
            self._deliver_surely(message, group, now)

    def _deliver_once_at_most(self, message: Message, group: Group, now: float) -> None:
        retain = message.retain and group.retain_as_published
        if message.frame[0] == 0x30 and not retain and message.expiry is None and not group.identifiers:
            frame, large = message.frame, None  # as it came
        else:
            form = message.form(0, now, retain=retain, identifiers=group.identifiers)
            frame, large = form.head, form.payload
        effects = self.shared.effects
        touched = effects.touched
        if len(message.frame) >= LARGE:
            effects.has_large = True
        for session in group.sessions:
            connection = session.connection
            if connection is not None and connection.direct:
                output = connection.output
                if not output:
                    touched.append(connection)
                output.append(frame)
                if large:
                    output.append(large)
            elif connection is not None and connection.is_old and waits_for_nothing(session, connection):
                form = message.old_form(0, retain=retain)
                self.write(connection, form.head, form.payload)
            else:
                self.hand(session, Delivery(message, 0, retain, group.identifiers), now)
        self.shared.counters.delivered += len(group.sessions)

    def _deliver_surely(self, message: Message, group: Group, now: float) -> None:
        retain = message.retain and group.retain_as_published
        qos = min(message.qos, group.qos)
        form = message.form(qos, now, retain=retain, identifiers=group.identifiers)
        head, tail, large = form.head, form.tail, form.payload
        delivery = Delivery(message, qos, retain, group.identifiers)
        shared = self.shared
        touched = shared.effects.touched
        size = message.size
        limits = shared.limits
        bytes_max = limits.queue_bytes_max
        all_bytes = shared.queued_bytes + shared.inflight_bytes + size * len(group.sessions)
        if all_bytes > limits.queue_bytes_max_all or all_bytes > limits.queue_bytes_address_max:
            bytes_max = 0  # not so fast: who gets it after all is looked at one by one
        sent = 0
        shared.effects.has_large |= bool(large)
        for session in group.sessions:
            connection = session.connection
            inflight = session.inflight
            inflight_bytes = session.inflight_bytes + size
            if (
                connection is not None
                and connection.direct  # so that nothing waits
                and len(inflight) < connection.window
                and inflight_bytes <= bytes_max
            ):
                number = session.next_id
                if number in inflight:
                    number = session.take_id()
                else:
                    session.next_id = number + 1 if number < 65_535 else 1
                inflight[number] = delivery
                session.inflight_bytes = inflight_bytes
                connection.address_use.bytes += size
                sent += size
                output = connection.output
                if not output:
                    touched.append(connection)
                output.append(head + PACKET_ID[number] + tail)
                if large:
                    output.append(large)
            elif (
                connection is not None
                and connection.is_old
                and waits_for_nothing(session, connection)
                and len(inflight) < connection.window
                and inflight_bytes <= bytes_max
            ):
                self._send(session, connection, delivery, now)
            else:
                self.hand(session, delivery, now)
        shared.inflight_bytes += sent
        shared.counters.delivered += len(group.sessions)

    # The careful way ---------------------------------------------------------------------------------

    def _deliver_guarded(self, message: Message, group: Group, now: float) -> None:
        retain = message.retain and group.retain_as_published
        delivery = Delivery(message, min(message.qos, group.qos), retain, group.identifiers)
        for session in group.sessions:
            if self.permits(message, session):
                self.hand(session, delivery, now)
                self.shared.counters.delivered += 1

    def permits(self, message: Message, session: Session) -> bool:
        """Whether a message's policy lets a subscriber see it; counted if not."""
        if message.policy is None or self._judges.permits(message.policy, session.attributes):
            return True
        self.shared.counters.dropped["policy"] += 1
        return False

    def _deliver_chosen(
        self, message: Message, route: Route, passed: AbstractSet[Filter], now: float
    ) -> None:
        """Hand a message to those who need a closer look, given the filters that it passes."""
        for one in route.picky:
            if one.filter is None or one.filter in passed:
                self.deliver_to(message, one.session, [one], now)
        for several in route.several:
            fitting = [one for one in several if one.filter is None or one.filter in passed]
            if fitting:
                self.deliver_to(message, fitting[0].session, fitting, now)
        for share in route.shares:
            fitting = [one for one in share.members.values() if one.filter is None or one.filter in passed]
            self._deliver_shared(message, share, fitting, now)

    def deliver_to(self, message: Message, session: Session, fitting: list[Subscription], now: float) -> int:
        """Hand a message to a session, once for all its subscriptions that it fits.

        Return the QoS, or -1 where it does not get the message: none fits after all, or it was dropped.
        """
        if session.client_id == message.publisher:
            fitting = [one for one in fitting if not one.no_local]
        if not fitting or not self.permits(message, session):
            return -1
        if len(fitting) == 1:
            only = fitting[0]
            qos, identifiers, retain = only.qos, only.identifiers, only.retain_as_published
        else:
            qos = max(one.qos for one in fitting)
            identifiers = tuple(number for one in fitting for number in one.identifiers)
            retain = any(one.retain_as_published for one in fitting)
        delivery = Delivery(message, min(message.qos, qos), message.retain and retain, identifiers)
        if not self.hand(session, delivery, now):
            return -1
        self.shared.counters.delivered += 1
        return delivery.qos

    def deliver_to_each(self, message: Message, sessions: Iterable[Session], now: float) -> list[int]:
        """Hand a message to those of some sessions that have a subscription which it fits.

        Return the QoS for each session, -1 where it does not get the message. That is for whoever routes, and
        stores what is on its way: window and reading alone decide who is sent something at once.
        """
        if message.address:
            return [self.deliver_to(message, one, self._fitting(message, one), now) for one in sessions]
        tree = self.shared.tree
        route = tree.routes.get(message.topic) or tree.route(message.topic)
        by_session, filters = route.by_session, route.filters
        is_plain = message.policy is None and not filters and self.shared.effects.collects
        levels: list[int] = []
        delivery: Delivery | None = None
        form: tuple[int, bool, tuple[int, ...]] | None = None
        for session in sessions:
            found = by_session.get(session, ())
            connection = session.connection
            if is_plain and len(found) == 1 and connection is not None and connection.direct:
                only = found[0]
                qos = min(message.qos, only.qos)
                if only.no_local or (qos and len(session.inflight) >= connection.window):
                    levels.append(self.deliver_to(message, session, found, now))
                    continue
                retain = message.retain and only.retain_as_published
                wanted = (qos, retain, only.identifiers)
                if delivery is None or wanted != form:
                    delivery, form = Delivery(message, *wanted), wanted
                is_sent = self._send(session, connection, delivery, now) > 0
                self.shared.counters.delivered += is_sent
                levels.append(qos if is_sent else -1)
            else:
                fitting = self._fitting(message, session) if filters else found
                levels.append(self.deliver_to(message, session, fitting, now) if fitting else -1)
        return levels

    def _fitting(self, message: Message, session: Session, most: int = 1 << 60) -> list[Subscription]:
        """The subscriptions of a session that a message fits; if it has more for the topic, all of these."""
        if message.address:
            one = addressee(session, message.address)
            return [] if one is None else [one]
        found = self.shared.tree.route(message.topic).by_session.get(session, [])
        if len(found) > most:
            return found
        passes = self.shared.filters.passes
        return [one for one in found if one.filter is None or passes(message, one.filter)]

    def thin(self, session: Session, now: float, *, is_back: bool) -> list[tuple[Message, str]]:
        """Drop from a session's queue what its subscriptions' policies do not keep; what, and why."""
        return self.thinning.all_of(session, now, is_back=is_back)

    def withhold(self, session: Session, allowed: Callable[[Message], bool], reason: str) -> None:
        """Drop what waits for a client and is not allowed, and what would be sent it again.

        What its present connection was sent already is left to be acknowledged.
        """
        queue = session.queue
        kept = [one for one in queue if allowed(one.message)]
        if len(kept) < len(queue):
            gone = [one for one in queue if not allowed(one.message)]
            replace_queue(self.shared, session, kept)
            for one in gone:
                self._drop(session, one, reason)
        resent = session.inflight if session.connection is None else session.unsent
        for number in list(resent):
            delivery = session.inflight[number]
            if delivery is not None and not allowed(delivery.message):
                self._forget_sent(session, number, delivery, reason)

    def _forget_sent(self, session: Session, number: int, delivery: Delivery, reason: str) -> int:
        """Be done with what a client was sent on an earlier connection, and is not sent again."""
        del session.inflight[number]
        if number in session.unsent:
            session.unsent.remove(number)
        change_inflight(self.shared, session, -delivery.message.size)
        return self._drop(session, delivery, reason)

    def _deliver_shared(
        self, message: Message, share: Share, fitting: list[Subscription], now: float
    ) -> None:
        """Hand a message to one member of a share, in turn, those that are here first."""
        fitting = [one for one in fitting if self.permits(message, one.session)]
        here = [one for one in fitting if one.session.connection is not None]
        choice = here or [one for one in fitting if message.qos and one.qos and one.session.expiry]
        if not choice:
            return
        if message.qos:
            share.turn += 1
            one = choice[share.turn % len(choice)]
        else:  # which no journal holds: another count, or the turns of the rest would be others there
            share.turn_unsure += 1
            one = choice[share.turn_unsure % len(choice)]
        retain = message.retain and one.retain_as_published
        self.hand(one.session, Delivery(message, min(message.qos, one.qos), retain, one.identifiers), now)
        self.shared.counters.delivered += 1

    # One session -------------------------------------------------------------------------------------

    def hand_all(self, session: Session, deliveries: Sequence[Delivery], now: float) -> None:
        """Send many messages to a client, as many at once as it may leave unread; the rest waits.

        These are retained ones, which nobody stores for the client: what finds no room is dropped.
        """
        budget, done = self.shared.limits.output_bytes_max, 0
        for delivery in deliveries[: AT_ONCE_MAX if session.connection is not None else None]:
            if budget <= 0 and session.connection is not None:
                break
            self.hand(session, delivery, now, is_stored=False)
            budget -= len(delivery.message.frame)
            done += 1
        rest = deliveries[done:]
        size = sum([delivery.message.size for delivery in rest])
        if rest and why_full(self.shared, session, size, len(rest)) is None:  # as with each of them
            session.queue.extend(rest)
            change_queued(self.shared, session, size, len(rest))
            if session.connection is not None:
                session.connection.direct = False
        else:
            for delivery in rest:
                self._enqueue(session, delivery, is_stored=False)

    def hand(self, session: Session, delivery: Delivery, now: float, *, is_stored: bool = True) -> bool:
        """Send a message to a client, or let it wait, or drop it and count that.

        Return False if the client is done with it. Whoever routes stores messages of QoS 1 and 2 for the
        client, within limits of its own, until they are acknowledged: such a message is never dropped for
        lack of room, or it would come after later ones, if at all. `is_stored` says that it may be one.
        """
        connection = session.connection
        if connection is None:
            if delivery.qos == 0 or session.expiry == 0:
                self.shared.counters.dropped["absent"] += 1
                return False
            self._enqueue(session, delivery, is_stored=is_stored)
        elif (
            session.queue
            or session.unsent
            or session.held
            or connection.blocked
            or (delivery.qos and self._must_wait(session, connection, delivery, is_stored=is_stored))
        ):
            self._enqueue(session, delivery, is_stored=is_stored)
        else:
            return self._send(session, connection, delivery, now) > 0
        return True

    def _must_wait(
        self, session: Session, connection: Connection, delivery: Delivery, *, is_stored: bool
    ) -> bool:
        """Whether too much is on its way to a client already; one message at a time always may be."""
        if session.on_their_way >= connection.window:
            return True
        is_limited = not (is_stored and self.shared.effects.collects)
        if not is_limited or not session.inflight:
            return False
        return why_full(self.shared, session, delivery.message.size) is not None

    def _enqueue(self, session: Session, delivery: Delivery, *, is_stored: bool) -> None:
        shared = self.shared
        size = delivery.message.size
        if session.thin_at and session.connection is None and len(session.queue) >= session.thin_at:
            self.thin(session, delivery.message.arrived_s, is_back=False)
        reason = why_full(shared, session, size)
        if reason is not None:
            connection = session.connection
            if connection is not None and connection.blocked and delivery.qos:
                shared.effects.overflowing[connection.number] = None
            if not (delivery.qos and is_stored and shared.effects.collects):
                shared.counters.dropped[reason] += 1
                session.missed += delivery.qos > 0  # of the others nobody was promised anything
                return
        session.queue.append(delivery)
        change_queued(shared, session, size, 1)
        if session.connection is not None:
            session.connection.direct = False

    def _send(self, session: Session, connection: Connection, delivery: Delivery, now: float) -> int:
        """Write a message to the output; return the bytes, 0 when it cannot be sent at all."""
        message = delivery.message
        if message.expires_s <= now:
            return self._drop(session, delivery, "expired")
        alias, with_topic = 0, True
        if connection.aliases_out_max:
            alias, with_topic = connection.alias_for(message.topic)
        if connection.is_old:
            form = message.old_form(delivery.qos, retain=delivery.retain)
        else:
            form = message.form(
                delivery.qos,
                now,
                retain=delivery.retain,
                identifiers=delivery.identifiers,
                alias=alias,
                with_topic=with_topic,
                numbered=connection.numbered,
            )
        if connection.packet_bytes_max and not connection.takes(form.size):
            return self._drop(session, delivery, TOO_LARGE)  # as if it had been sent (MQTT-3.1.2-25)
        if alias and with_topic:
            connection.aliases_out[message.topic] = alias
        packet, inflight = form.head, session.inflight
        if delivery.qos:
            number = session.next_id
            if number in inflight:
                number = session.take_id()
            else:
                session.next_id = number + 1 if number < 65_535 else 1
            inflight[number] = delivery
            size = message.weighed or message.size
            session.inflight_bytes += size
            self.shared.inflight_bytes += size
            connection.address_use.bytes += size
            packet += PACKET_ID[number] + form.tail
        output = connection.output
        if not output:
            self.shared.effects.touched.append(connection)
        output.append(packet)
        self.shared.effects.has_large |= form.size >= LARGE
        if form.payload:
            output.append(form.payload)
        return form.size

    def _drop(self, session: Session, delivery: Delivery, reason: str) -> int:
        """Be done with a message that its client is not sent; return the bytes that were written, none."""
        self.shared.counters.dropped[reason] += 1
        if delivery.qos and self.shared.effects.collects:
            self.shared.effects.settled.append((session, delivery, reason))
        return 0

    def write(self, connection: Connection, packet: bytes, payload: Data = b"") -> None:
        """Put a packet into a connection's output, with what comes behind it."""
        if not connection.output:
            self.shared.effects.touched.append(connection)
        self.shared.effects.has_large |= bool(payload)
        connection.output += [packet, payload] if payload else [packet]

    def resend(self, session: Session, now: float) -> None:
        """Begin a new connection of an old session: what was not answered is sent again, then the rest."""
        session.unsent.clear()
        session.unsent.extend(session.inflight)
        self.pump(session, now)

    def pump(self, session: Session, now: float) -> None:
        """Send what waits, as far as the client's window and its reading allow."""
        connection = session.connection
        if connection is None or connection.blocked or connection.state is not State.OPEN:
            return
        # No more than a slow reader may leave unread; the driver looks whether it is read, and comes back.
        budget = self.shared.limits.output_bytes_max
        while session.unsent and session.on_their_way < connection.window and budget > 0:
            budget -= self._send_again(session, connection, session.unsent.popleft(), now)
        queue = session.queue
        if not session.unsent and not session.held:
            inflight, window, left = session.inflight, connection.window, AT_ONCE_MAX
            while queue and budget > 0 and left > 0:
                if queue[0].qos and len(inflight) >= window:
                    break
                delivery = queue.popleft()
                change_queued(self.shared, session, -delivery.message.size, -1)
                budget -= self._send(session, connection, delivery, now)
                left -= 1
        connection.direct = not (
            queue
            or session.unsent
            or session.held
            or connection.aliases_out_max
            or connection.packet_bytes_max
            or connection.numbered
            or connection.is_old
        )
        self.shared.put_out += self.shared.limits.output_bytes_max - budget

    def _send_again(self, session: Session, connection: Connection, number: int, now: float) -> int:
        delivery = session.inflight[number]
        if delivery is None:
            self.write(connection, PubRelPacket(number).write())
            return 4
        # The packet was sent before, so it is completed, expired or not; its expiry shrinks to the least.
        if connection.is_old:
            form = delivery.message.old_form(delivery.qos, retain=delivery.retain)
        else:
            form = delivery.message.form(
                delivery.qos,
                now,
                retain=delivery.retain,
                identifiers=delivery.identifiers,
                numbered=connection.numbered,
            )
        if not connection.takes(form.size):
            return self._forget_sent(session, number, delivery, TOO_LARGE)
        head = bytes((form.head[0] | 0x08,)) + form.head[1:]
        self.write(connection, head + PACKET_ID[number] + form.tail, form.payload)
        return form.size
