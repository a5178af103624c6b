"""A broker's tables, and what it does with advertisements, subscriptions and publications.

Paper 000, Table 3 names four tables. Here `ads` and `subs` are inAds and inSubs: by interest, the mask of
neighbours it was heard from. outAds and outSubs follow from them, since whether an entry exists is a rule
and only its flag `sent` is history (`covering.py`):

- an advertisement has an entry for each neighbour that would hear it from somebody else;
- a subscription has one for each such neighbour that also sent an advertisement intersecting it. In
  Figure 2 line 13 and Figure 3 line 6 the covering subscription must have been sent to that neighbour, the
  one the subscription would go to; section 2.2.2 says so, the pseudo-code names another.

From the first rule all else falls out. A second source of an identical interest changes nothing but for
the first source, which now hears it too: that is the graft of section 4.4, which travels only towards the
old root. When one of two sources leaves, the other takes its place, and only the entry for the other goes.

The neighbours must form an acyclic network (`overlay.py`) with FIFO links. A link's messages then leave the
receiver's table equal to the sender's entries, whatever crosses on other links, and each entry rests on a
client in the end. Nothing here knows clients' moves, time or messages' cost.
"""

from collections.abc import Callable, Iterable

from sojourn.routing.covering import Covering
from sojourn.routing.effects import Deliver, Effects
from sojourn.routing.interests import Interests
from sojourn.routing.messages import (
    NO_CAUSE,
    Advertise,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from sojourn.routing.neighbours import LOCAL, Neighbours, bits, targets


class Router:
    """The routing half of one broker; effects go to the `Effects` it was given."""

    __slots__ = (
        "_ad_above",
        "_ad_covering",
        "_ads_of",
        "_everyone",
        "_sends",
        "_sub_above",
        "_sub_covering",
        "_subs_of",
        "ads",
        "effects",
        "interests",
        "local_ads",
        "local_subs",
        "neighbours",
        "subs",
        "turned",
        "untold",
    )

    def __init__(self, neighbours: Neighbours, interests: Interests, effects: Effects) -> None:
        self.neighbours = neighbours
        self.interests = interests
        self.effects = effects
        self.ads: dict[int, int] = {}
        """inAds: by advertisement, the mask of neighbours that sent it."""
        self.subs: dict[int, int] = {}
        """inSubs: by subscription, the mask of neighbours that sent it."""
        self.local_ads: dict[int, dict[int, None]] = {}
        """By advertisement, the local clients it is held for."""
        self.local_subs: dict[int, dict[int, None]] = {}
        """By subscription, the local clients that made it."""
        self.untold = 0
        """The mask of neighbours that have not said yet what they want: they are sent everything."""
        self.turned: list[int] | None = None
        """Subscriptions that somebody has now and nobody had before, or the other way round, for whoever
        follows them, makes this a list and empties it."""
        self._everyone = neighbours.everyone
        self._sends = effects.sends
        self._ads_of, self._subs_of = interests.ads_of, interests.subs_of
        self._ad_above, self._sub_above = interests.ad_above, interests.sub_above
        self._ad_covering = Covering(interests.ad_above, interests.ad_covers, self._ad_out)
        self._sub_covering = Covering(interests.sub_above, interests.sub_covers, self._sub_out)

    # What clients do -------------------------------------------------------------------------------

    def client_advertises(self, client: int, ad: int, cause: int = NO_CAUSE) -> bool:
        """Hold an advertisement for a client; say whether that was new."""
        holders = self.local_ads.setdefault(ad, {})
        if client in holders:
            return False
        holders[client] = None
        if len(holders) == 1:
            self.advertise(Advertise(ad, cause), LOCAL)
        return True

    def client_unadvertises(self, client: int, ad: int, cause: int = NO_CAUSE) -> bool:
        """No longer hold an advertisement for a client; say whether it was held."""
        holders = self.local_ads.get(ad, {})
        if client not in holders:
            return False
        del holders[client]
        if not holders:
            del self.local_ads[ad]
            self.unadvertise(Unadvertise(ad, cause), LOCAL)
        return True

    def client_subscribes(self, client: int, sub: int, cause: int = NO_CAUSE) -> bool:
        """Enter a local client's subscription; say whether that was new."""
        holders = self.local_subs.setdefault(sub, {})
        if client in holders:
            return False
        holders[client] = None
        if len(holders) == 1:
            self.subscribe(Subscribe(sub, cause), LOCAL)
        return True

    def client_unsubscribes(self, client: int, sub: int, cause: int = NO_CAUSE) -> bool:
        """Remove a local client's subscription; say whether there was one."""
        holders = self.local_subs.get(sub, {})
        if client not in holders:
            return False
        del holders[client]
        if not holders:
            del self.local_subs[sub]
            self.unsubscribe(Unsubscribe(sub, cause), LOCAL)
        return True

    # What neighbours send (Figures 2 and 3) --------------------------------------------------------

    def advertise(self, message: Advertise, bit: int) -> None:
        """Figure 2: store, forward, and send back the subscriptions that want it."""
        ad = message.interest
        ads = self.ads
        before = ads.get(ad, 0)
        if before & bit:
            return
        ads[ad] = before | bit
        # The new targets: everybody else if nobody was told yet, or the one source so far.
        if not before:
            mask = self._everyone & ~bit
        elif before & (before - 1):
            mask = 0
        else:
            mask = before & self._everyone
        if mask:
            if self._ad_above[ad] is not None:
                mask = self._ad_covering.enter(ad, mask)
            if mask:
                self._sends.append((mask, message))
        if bit != LOCAL and self._subs_of[ad]:
            self._answer(ad, bit, message.cause)

    def _answer(self, ad: int, bit: int, cause: int) -> None:
        """Figure 2, lines 11 to 18: send the subscriptions that intersect an advertisement towards it."""
        subs = self.subs
        related: list[int] = []
        for sub in self._candidates(ad):
            if subs.get(sub, 0) & ~bit and not self._wanted_otherwise(sub, ad, bit):
                if self._sub_covering.stays(sub, bit):
                    continue
                if self._sub_above[sub] is None:
                    self._sends.append((bit, Subscribe(sub, cause)))
                else:
                    related.append(sub)
        if related:
            sent = self._sub_covering.enter_all(related, bit)
            self._sends += [(bit, Subscribe(sub, cause)) for sub in sent]

    def unadvertise(self, message: Unadvertise, bit: int) -> None:
        """Undo Figure 2, sending first what a withdrawn advertisement had covered."""
        ad = message.interest
        ads = self.ads
        before = ads.get(ad, 0)
        if not before & bit:
            return
        left = before ^ bit
        if left:
            ads[ad] = left
            mask = 0 if left & (left - 1) else left & self._everyone
        else:
            del ads[ad]
            mask = self._everyone & ~bit
        if mask:
            if self._ad_covering.held:
                mask, uncovered = self._ad_covering.leave(ad, mask)
                self._sends += [(to, Advertise(other, message.cause)) for to, other in uncovered]
            if mask:
                self._sends.append((mask, message))
        if bit == LOCAL or not self._subs_of[ad]:
            return
        subs = self.subs
        for sub in self._candidates(ad):
            if subs.get(sub, 0) & ~bit and not self._wanted_otherwise(sub, ad, bit):
                self._withdraw(Unsubscribe(sub, message.cause), bit)

    def subscribe(self, message: Subscribe, bit: int) -> None:
        """Figure 3: store, and forward towards the advertisements that intersect it."""
        sub = message.interest
        before = self.subs.get(sub, 0)
        if before & bit:
            return
        self.subs[sub] = before | bit
        if not before:
            self.interests.taken_up(sub)
            if self.turned is not None:
                self.turned.append(sub)
        wanted = self._wanted(sub)
        mask = targets(before | bit, wanted) & ~targets(before, wanted)
        if mask and self._sub_covering.leaving:
            mask &= ~self._sub_covering.stays(sub, mask)
        if mask:
            if self._sub_above[sub] is not None:
                mask = self._sub_covering.enter(sub, mask)
            if mask:
                self._sends.append((mask, message))

    def unsubscribe(self, message: Unsubscribe, bit: int) -> None:
        """Undo Figure 3, sending first what a withdrawn subscription had covered."""
        sub = message.interest
        before = self.subs.get(sub, 0)
        if not before & bit:
            return
        left = before ^ bit
        if left:
            self.subs[sub] = left
        else:
            del self.subs[sub]
            self.interests.let_go(sub)
            if self.turned is not None:
                self.turned.append(sub)
        wanted = self._wanted(sub)
        mask = targets(before, wanted) & ~targets(left, wanted)
        if mask:
            self._withdraw(message, mask)

    def publish(self, message: Publish, bit: int) -> None:
        """Section 2.2.3: forward an event to whoever sent a subscription that matches it."""
        if message.version != self.interests.version:
            self._match(message)
        subs = self.subs
        mask = 0
        for sub in message.matched:
            mask |= subs.get(sub, 0)
        towards = mask & ~bit & ~LOCAL
        if towards:
            self._sends.append((towards, message))
        if self.untold:
            guess = self.untold & ~mask & ~bit
            if guess:
                self.effects.guesses.append((guess, message))
        if mask & LOCAL:
            self.effects.deliveries.append(Deliver(self._local_clients(message.matched), message))

    def _match(self, message: Publish) -> None:
        """Find out which subscriptions want an event."""
        interests = self.interests
        known = interests.by_topic.get(message.topic)
        message.matched = interests.match(message.event) if known is None else known
        message.version = interests.version

    def audience(self, message: Publish) -> int:
        """How many clients here an event is for; one with several subscriptions counts for each."""
        if message.version != self.interests.version:
            self._match(message)
        return sum(len(self.local_subs.get(sub, ())) for sub in message.matched)

    def _local_clients(self, matched: tuple[int, ...]) -> tuple[int, ...]:
        """The local clients that made these subscriptions, each once."""
        local = self.local_subs
        if len(matched) == 1:
            return tuple(local.get(matched[0], ()))
        return tuple(dict.fromkeys(client for sub in matched for client in local.get(sub, ())))

    # What the network does -------------------------------------------------------------------------

    def neighbour_lost(self, broker: int, cause: int = NO_CAUSE, *, for_good: bool = False) -> None:
        """Forget a neighbour and all it had sent; nothing is sent to it any more."""
        bit = self.neighbours.bit(broker)
        start = len(self._sends)
        for sub in [sub for sub, sources in self.subs.items() if sources & bit]:
            self.unsubscribe(Unsubscribe(sub, cause), bit)
        for ad in [ad for ad, sources in self.ads.items() if sources & bit]:
            self.unadvertise(Unadvertise(ad, cause), bit)
        self.neighbours.remove(broker, for_good=for_good)
        self.untold &= ~bit
        self._everyone = self.neighbours.everyone
        self._ad_covering.forget(bit)
        self._sub_covering.forget(bit)
        self._sends[start:] = [(to & ~bit, message) for to, message in self._sends[start:] if to & ~bit]

    def neighbour_gained(self, broker: int, cause: int = NO_CAUSE) -> None:
        """Greet a new neighbour with the advertisements it is to know; subscriptions follow its own."""
        bit = self.neighbours.add(broker)
        self._everyone = self.neighbours.everyone
        sent = self._ad_covering.enter_all(list(self.ads), bit)
        self._sends += [(bit, Advertise(ad, cause)) for ad in sent]

    def withdraw_in_parts(self, part_max: int) -> None:
        """Look at no more than so many subscriptions at once when one that covered them leaves."""
        self._sub_covering.part_max = part_max

    @property
    def leaving(self) -> dict[int, dict[int, int]]:
        """By a neighbour's bit: subscriptions that are to be withdrawn (`go_on_withdrawing`)."""
        return self._sub_covering.leaving

    def go_on_withdrawing(self) -> None:
        """Send a part of what a subscription that leaves had covered; after the last part, withdraw it."""
        bit, sub, cause, sent = self._sub_covering.go_on_leaving()
        self._sends += [(bit, Subscribe(other, cause)) for other in sent]
        if sub not in self.leaving.get(bit, ()):
            self._sends.append((bit, Unsubscribe(sub, cause)))

    # Table 3 as the paper writes it ----------------------------------------------------------------

    def out_ads(self) -> list[tuple[int, int, bool]]:
        """outAds: (advertisement, neighbour's bit, sent)."""
        return _entries(self.ads, self._ad_out, self._ad_covering)

    def out_subs(self) -> list[tuple[int, int, bool]]:
        """outSubs: (subscription, neighbour's bit, sent)."""
        return _entries(self.subs, self._sub_out, self._sub_covering)

    def is_empty(self) -> bool:
        """Whether no table holds anything."""
        tables = (self.ads, self.subs, self.local_ads, self.local_subs)
        return not any((*tables, self._ad_covering.held, self._sub_covering.held))

    # The rules -------------------------------------------------------------------------------------

    def _ad_out(self, ad: int) -> int:
        return targets(self.ads.get(ad, 0), self._everyone)

    def _sub_out(self, sub: int) -> int:
        sources = self.subs.get(sub, 0)
        return targets(sources, self._wanted(sub)) if sources else 0

    def _wanted(self, sub: int) -> int:
        """The neighbours that sent an advertisement which intersects the subscription."""
        ads = self.ads
        wanted = 0
        for ad in self._ads_of[sub]:
            wanted |= ads.get(ad, 0)
        return wanted

    def _wanted_otherwise(self, sub: int, ad: int, bit: int) -> bool:
        """Whether the neighbour wants a subscription for the sake of another advertisement too."""
        others = self._ads_of[sub]
        if len(others) == 1:
            return False
        ads = self.ads
        return any(ads.get(other, 0) & bit for other in others if other != ad)

    def _candidates(self, ad: int) -> Iterable[int]:
        """A superset of the subscriptions here that intersect an advertisement, the shorter of two lists."""
        intersecting = self._subs_of[ad]
        if len(intersecting) <= len(self.subs):
            return intersecting
        return [sub for sub in self.subs if sub in intersecting]

    def _withdraw(self, message: Unsubscribe, mask: int) -> None:
        if self._sub_covering.held:
            mask, uncovered = self._sub_covering.leave(message.interest, mask, message.cause)
            self._sends += [(to, Subscribe(other, message.cause)) for to, other in uncovered]
        if mask:
            self._sends.append((mask, message))


def _entries(
    heard: dict[int, int], out: Callable[[int], int], covering: Covering
) -> list[tuple[int, int, bool]]:
    return [
        (interest, bit, interest not in covering.held.get(bit, ()))
        for interest in sorted(heard)
        for bit in bits(out(interest))
    ]
