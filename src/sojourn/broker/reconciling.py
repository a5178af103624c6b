"""Two neighbours, one of which has forgotten something, come to terms again.

Both begin a new stream of frames (`channel.py`), and each tells the other everything that follows from its
tables: advertisements, subscriptions, retained values; then `SyncEnd`, as in every stream. What a neighbour
had said before stays in force until its `SyncEnd`, so that events flow all the time; what it has not repeated
by then is withdrawn. Of what was queued for it before, events and messages about clients go into the new
stream; interests and retained values do not, since the tables say the same and more.

A neighbour that has not ended its story in the present stream may want anything (`Router.untold`): after a
store was deleted, or a broker was moved into another network, it is sent every event until it has. Hence
nobody ends a story that it does not know itself. A broker says `SyncEnd` to a neighbour when all its other
neighbours have said theirs, and when it has heard that neighbour's advertisement of anything, which is what
subscriptions follow. In a tree nobody waits for one who waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sojourn.broker.carried import Carried
from sojourn.broker.clients import Clients
from sojourn.broker.effects import Note
from sojourn.broker.links import Links
from sojourn.broker.messages import RETAIN, ROLL, SETTLED, SYNC_END, Reach, Retain, Roll, SyncEnd
from sojourn.broker.ruling import tell_bans
from sojourn.broker.settings import AtOnce
from sojourn.broker.wire import kind_of
from sojourn.mobility import facts
from sojourn.mobility.finding_messages import Forgot
from sojourn.mqtt.core import Core
from sojourn.routing.flooding import FloodingRouter
from sojourn.routing.messages import Advertise, Kind, Subscribe, Unadvertise, Unsubscribe

RETAIN_BATCH, RETAIN_BATCH_BYTES = 64, 1 << 18
"""Retained values in one frame, and about how large they may be together."""
_TOLD_ANEW = (Kind.ADVERTISE, Kind.UNADVERTISE, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, RETAIN, ROLL, SYNC_END)


class Reconciling:
    """What one broker has to hear again from neighbours."""

    def __init__(
        self,
        core: Core,
        links: Links,
        clients: Clients,
        roll: Callable[[], Roll | None] = lambda: None,
        told_at_once: int = AtOnce().told,
    ) -> None:
        self._core, self._links, self._clients = core, links, clients
        self._told_at_once = told_at_once
        self._roll = roll
        """Says who has joined and left the network, if anybody has."""
        self._routes = not isinstance(clients.broker.router, FloodingRouter)
        """Whether neighbours tell each other what they want."""
        self.stale_ads: dict[int, set[int]] = {}
        """By neighbour: the advertisements that it has not repeated yet."""
        self.stale_subs: dict[int, set[int]] = {}
        self.stale_links: dict[int, set[tuple[int, int]]] = {}
        """By neighbour: the links behind it that were down, and of which it has not said so again."""
        self.owed: set[int] = set()
        """Neighbours that are still to be told that all was told."""
        self.resets: Counter[str] = Counter()
        """By neighbour: how often something had been forgotten."""
        self.memories: dict[str, str] = {}
        """By neighbour: what its memory was called when it was last met."""
        self.forgot: Counter[str] = Counter()
        """By neighbour: how often it came back without any memory."""
        self.telling: dict[int, list[str]] = {}
        """By neighbour: the topics whose retained values it is still to be told, the next one last."""

    def remember(self, old: Reconciling) -> None:
        """Take over what is known of neighbours from the network that the broker was in before."""
        self.memories, self.forgot, self.resets = old.memories, old.forgot, old.resets

    def met(self, peer: str, memory: str, now: float) -> None:
        """A neighbour said what its memory is called."""
        before = self.memories.get(peer)
        self.memories[peer] = memory
        if before is not None and before != memory:
            self.forgot[peer] += 1
            self._clients.notes.append(Note("forgot", (peer, now)))

    def begin(self, life: str, now: float) -> None:
        """In every stream that began with this life: expect to be told everything, and tell all.

        A neighbour may wait for that: it had met this broker before its store was deleted, and has begun anew
        on a connection that broke before this broker heard why. Or it is new in this network.
        """
        for peer, channel in self._links.channels.items():
            if channel.births == [(life, 0)]:
                number = self._links.numbers[peer]
                self._tell_roll(self._links.neighbours.bit(number), now)
                self._tell_holdings(number, now)
                self._expect(number)
        self._end_stories(now)
        self._clients.members.told(now)

    def welcome(self, number: int, now: float) -> None:
        """A broker that joined the network is a neighbour now: tell it all, and expect to be told."""
        self._tell_roll(self._links.neighbours.bit(number), now)
        self._tell_holdings(number, now)
        self._expect(number)
        self._end_stories(now)

    def part_with(self, number: int, now: float) -> None:
        """A neighbour has left the network: nobody owes it anything, nor waits for its story."""
        self.owed.discard(number)
        self.telling.pop(number, None)
        for stale in (self.stale_ads, self.stale_subs, self.stale_links):
            stale.pop(number, None)
        self._end_stories(now)
        self._clients.members.told(now)

    def _expect(self, number: int) -> None:
        """Send a neighbour everything until it has told what it wants; owe it the end of a story."""
        self.owed.add(number)
        if self._routes:
            self._clients.broker.router.untold |= self._links.neighbours.bit(number)

    def _end_stories(self, now: float) -> None:
        """Say that all was told to those neighbours of whom that is true by now."""
        links, router = self._links, self._clients.broker.router
        for number in sorted(self.owed):
            bit = links.neighbours.bit(number)
            is_asked = not self._routes or router.ads.get(links.interests.anything, 0) & bit
            if is_asked and not router.untold & ~bit:
                self.owed.discard(number)
                links.send(bit, SyncEnd(), now)

    def reset(self, peer: str, now: float, taken: int = 0) -> None:
        """Begin anew with a neighbour: tell it everything, and wait to be told everything.

        Of what was queued for it the frames up to the number `taken` are with it already.
        """
        links = self._links
        number = links.numbers[peer]
        bit = links.neighbours.bit(number)
        router = self._clients.broker.router
        self.resets[peer] += 1
        self._finish_withdrawing(bit, now)
        self.stale_ads[number] = {ad for ad, sources in router.ads.items() if sources & bit}
        self.stale_subs[number] = {sub for sub, sources in router.subs.items() if sources & bit}
        self.stale_links[number] = {link for link in links.far_down if links.is_behind(number, link[0])}
        left = links.channels[peer].reset(taken)
        links.forget_pieces(peer)
        self._tell_roll(bit, now)
        for body in left:
            if kind_of(body) == SETTLED:  # what became of events, before it is known who is gone
                links.channels[peer].put(body)
        for ad, to, sent in router.out_ads():
            if to == bit and sent:
                links.send(bit, Advertise(ad), now)
        for sub, to, sent in router.out_subs():
            if to == bit and sent:
                links.send(bit, Subscribe(sub), now)
        self._tell_holdings(number, now)
        for one, other in links.far_down:
            if not links.is_behind(number, one):
                links.send(bit, Reach(one, other, up=False), now)
        self._expect(number)
        self._end_stories(now)
        for body in left:
            if kind_of(body) not in (*_TOLD_ANEW, SETTLED):
                links.channels[peer].put(body)

    def doubt_copies(self, sender: int | None, now: float) -> None:
        """Let active copies end, here and at all other brokers (`CopyRequests.on_doubted`).

        This broker has forgotten something; or some other has, as `sender` said.
        """
        self._links.flood(Forgot(), sender, now)
        self._clients.tell(facts.CopiesDoubted(), now)

    def _finish_withdrawing(self, bit: int, now: float) -> None:
        """Be done with what is leaving, or a neighbour would not be told anew what that covers."""
        router = self._clients.broker.router
        if bit in router.leaving:
            while bit in router.leaving:
                router.go_on_withdrawing()
            self._clients.carry_out(self._clients.broker.effects, now)

    def _tell_roll(self, bit: int, now: float) -> None:
        """Tell a neighbour first of all who has joined and left: what follows may be about them."""
        roll = self._roll()
        if roll is not None:
            self._links.send(bit, roll, now)

    def _tell_holdings(self, number: int, now: float) -> None:
        """Tell a neighbour what every broker is to have: retained values, and who is banned."""
        self.tell_retained(number, now)
        tell_bans(self._core, self._links, self._links.neighbours.bit(number), now)

    def tell_retained(self, number: int, now: float) -> None:
        """Tell a neighbour retained values, from the first on; there may be very many."""
        topics = self._core.state.retained.topics(now)
        topics.reverse()
        self.telling.pop(number, None)
        self._tell_some(number, topics, now)

    def go_on_telling(self, now: float) -> None:
        """Tell one neighbour some more of the retained values, each in turn."""
        if self.telling:
            number = next(iter(self.telling))
            self._tell_some(number, self.telling.pop(number), now)

    def _tell_some(self, number: int, topics: list[str], now: float) -> None:
        """Tell a neighbour what some topics have by now; what is retained meanwhile it hears of at once."""
        retained, bit = self._core.state.retained, self._links.neighbours.bit(number)
        left = self._told_at_once
        while topics and left > 0:
            batch: list[Carried] = []
            size, most = 0, min(left, RETAIN_BATCH)
            while topics and len(batch) < most and size < RETAIN_BATCH_BYTES:
                message = retained.value(topics.pop(), now)
                if message is not None:
                    batch.append(Carried(message))
                    size += len(message.frame)
            if batch:
                self._links.send(bit, Retain(tuple(batch)), now)
            left -= max(len(batch), RETAIN_BATCH if size >= RETAIN_BATCH_BYTES else 1)
        if topics:
            self.telling[number] = topics

    def heard(self, message: Advertise | Unadvertise | Subscribe | Unsubscribe, sender: int) -> None:
        """A neighbour speaks of an interest: what it had said of that before no longer counts."""
        is_about_ads = message.kind in (Kind.ADVERTISE, Kind.UNADVERTISE)
        stale = (self.stale_ads if is_about_ads else self.stale_subs).get(sender)
        if stale:
            stale.discard(message.interest)

    def advertised(self, now: float) -> None:
        """A neighbour has advertised something: what it is owed because of that was sent before this."""
        if self.owed:
            self._end_stories(now)

    def heard_of(self, reach: Reach, sender: int) -> None:
        """A neighbour speaks of a link: what it had said of that before no longer counts."""
        self.stale_links.get(sender, set()).discard((reach.origin, reach.peer))

    def on_end(self, sender: int, now: float) -> None:
        """A neighbour has repeated everything: the rest is withdrawn."""
        for one, other in sorted(self.stale_links.pop(sender, ())):
            reach = Reach(one, other, up=True)
            self._links.heard_of(reach, now)
            self._links.flood(reach, sender, now)
        for sub in sorted(self.stale_subs.pop(sender, ())):
            self._clients.tell(facts.Received(Unsubscribe(sub), sender), now)
        for ad in sorted(self.stale_ads.pop(sender, ())):
            self._clients.tell(facts.Received(Unadvertise(ad), sender), now)
        self._clients.broker.router.untold &= ~self._links.neighbours.bit(sender)
        self._end_stories(now)
        self._clients.members.told(now)
