"""The sessions at one broker as members of groups, and how it goes with the events that they are sent.

| what happens at a session | what other brokers learn |
| --- | --- |
| it is subscribed to a group | an interest in its address, which moves with it like all its interests |
| its client comes, or is gone | an interest that says where it is connected, while it is |
| it is done with an event, or declines it | `Settled`, for the broker that picked it |
| it is a member no longer | the interest in its address ends |

What a broker says of events leaves before an interest ends that it says in the same breath. The other half,
who picks members for events, is in `sharing.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.broker.carried import Carried
from sojourn.broker.messages import Settled
from sojourn.broker.roamers import Roamer
from sojourn.mobility import facts
from sojourn.mobility.giving import TOO_LATE
from sojourn.mobility.queues import FULL, PARTY_FULL
from sojourn.mqtt.content import ContentError, interest_of
from sojourn.mqtt.delivery import TOO_LARGE
from sojourn.mqtt.members import address_of, addressee, group_of, here_at
from sojourn.mqtt.message import Message
from sojourn.mqtt.rights import NOT_ALLOWED
from sojourn.mqtt.session import Session, Subscription
from sojourn.routing.effects import Dropped
from sojourn.routing.messages import Publish

if TYPE_CHECKING:
    from sojourn.broker.clients import Clients

NOBODY = 0
"""The client that stands for the broker itself."""
DECLINED = frozenset({TOO_LARGE, NOT_ALLOWED})
"""Why one session is not sent an event that another may take."""


def is_spared(publication: Publish, now: float) -> bool:
    """Whether an event is no loss with the session that had it: another member gets it, or it is too old."""
    assert isinstance(publication, Carried), "live brokers carry MQTT messages"
    message = publication.message
    return bool(message.address) or message.expires_s <= now


class Membership:
    """What a broker tells others of its sessions as members of groups."""

    def __init__(self, clients: Clients) -> None:
        self._clients, self._core, self._links = clients, clients.core, clients.links
        self._shares = clients.shares
        self.reports: dict[str, tuple[list[int], list[int]]] = {}
        """By source: the numbers of events that sessions are done with, and of those that they declined."""
        self._own: list[Settled] = []
        """What is to be taken in of events that were picked here."""
        self._is_following = False
        self._here: dict[int, dict[Subscription, int]] = {}
        """By client connected here and membership: the interest that says so."""

    # Members -------------------------------------------------------------------------------------------

    def interest_of(self, one: Subscription) -> int | None:
        """Return the number of the interest of a subscription; None if there is none."""
        try:
            if not one.share:
                wanted = interest_of(one.pattern, one.filter)
            elif self._core.state.shared_subscriptions:
                wanted = interest_of(address_of(one), None)
            else:
                return None  # from a life in which there were groups
        except ContentError:
            return None  # made at a broker that had nobody to tell
        return self._links.interests.subscription(wanted)

    def withdraw(self, before: dict[Subscription, int], roamer: Roamer, session: Session) -> list[Message]:
        """Let go of what waits for a session as a member that it is no more; return it.

        Who is a member of the same group on other terms keeps what it was sent: others are not to have it.
        """
        gone = {address_of(one) for one in before if one.share and one not in roamer.numbers}
        if not gone or session.ended:
            return []
        joined = {address_of(one) for one in roamer.numbers if one.share and one not in before}
        gone -= joined
        groups = {group_of(address) for address in joined}
        for delivery in session.inflight.values() if groups else ():
            address = delivery.message.address if delivery is not None else ""
            if delivery is not None and address in gone and group_of(address) in groups:
                self._report(delivery.message)
        return self._core.custody.withdraw(session.client_id, gone) if gone else []

    def is_here(self, client: int, session: Session | None, now: float) -> None:
        """Tell of which members the client is connected here; of none without a session."""
        known, found = self._here.pop(client, {}), {}
        if session is not None and session.connection is not None:
            for one in session.subscriptions.values():
                number = known.get(one) if one in known or not one.share else self._interest_here(one)
                if number is not None:
                    found[one] = number
        if found:
            self._here[client] = found
        held, now_held = {*self._shares.here.get(client, ())}, {*found.values()}
        if held == now_held:
            return
        self._shares.here[client] = tuple(found.values())
        if not found:
            del self._shares.here[client]
        for interest in sorted(now_held - held):
            self._clients.tell(facts.ClientSubscribed(NOBODY, interest), now)
        for interest in sorted(held - now_held):
            self._clients.tell(facts.ClientUnsubscribed(NOBODY, interest), now)

    def _interest_here(self, one: Subscription) -> int | None:
        if self.interest_of(one) is None:
            return None
        topic = here_at(address_of(one), self._links.number)
        return self._links.interests.subscription(interest_of(topic, None))

    # Events --------------------------------------------------------------------------------------------

    def handed(self, session: Session, message: Message, qos: int) -> None:
        """Note an event for which no answer will come: it was sent at QoS 0, or not at all."""
        if qos == 0:
            self._report(message)
        elif addressee(session, message.address) is not None:
            self._report(message, declines=True)

    def settled(self, message: Message, why_not: str) -> None:
        """Note that a session is done with an event."""
        self._report(message, declines=why_not in DECLINED)

    def dropped(self, drop: Dropped) -> None:
        """Note an event that a session does not get; of sessions elsewhere their brokers tell."""
        event = drop.publication
        if drop.reason in (FULL, PARTY_FULL, TOO_LATE) and drop.client in self._clients.roamers:
            assert isinstance(event, Carried), "live brokers carry MQTT messages"
            self._report(event.message, declines=True)

    def _report(self, message: Message, *, declines: bool = False) -> None:
        if message.address and message.qos:
            done, declined = self.reports.setdefault(message.source, ([], []))
            (declined if declines else done).append(message.sequence)

    def flush(self, now: float) -> None:
        """Say how it went with events, to those who picked members for them."""
        reports, self.reports = self.reports, {}
        for source, (done, declined) in reports.items():
            broker = self._links.numbers.get(source.rpartition("@")[2].partition("~")[0])
            if broker is not None:
                self._pass_on(Settled(broker, source, tuple(done), tuple(declined)), now)

    def received(self, message: Settled, now: float) -> None:
        """Take in how it went with events that were picked here, or pass it on."""
        self._pass_on(message, now)
        self.follow(now)

    def _pass_on(self, message: Settled, now: float) -> None:
        if message.destination == self._links.number:
            self._own.append(message)
        else:
            self._links.forward(message, now)

    def follow(self, now: float) -> None:
        """Take in what became of events, and then who became a member and who is one no longer.

        That may lead to further events for members, who decline those as well, and so on: it goes on here,
        one after the other, and not from within.
        """
        if self._is_following:
            return
        self._is_following = True
        turned = self._clients.broker.router.turned
        try:
            while self.reports or self._own or turned:
                self.flush(now)
                own, self._own = self._own, []
                for one in own:
                    again = self._shares.settled(one.source, one.done, one.declined, now)
                    self._clients.events.route(list(again), now)
                if turned and not self.reports and not self._own:
                    self._clients.events.route(list(self._shares.follow(now)), now)
        finally:
            self._is_following = False

    def go_on(self, now: float) -> None:
        """Have members picked for a part of what others left that are no more."""
        self._clients.events.route(list(self._shares.go_on(now)), now)
        self.follow(now)

    def told(self, now: float) -> None:
        """A neighbour has told all that it wants."""
        self._clients.events.route(list(self._shares.told(now)), now)
