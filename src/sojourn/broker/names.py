"""The numbers that a live broker's cores use, and the names that brokers share.

Cores count clients, subscriptions and advertisements in small numbers; brokers of other processes count
theirs. `Names` gives and finds the numbers of one process (`wire.Translator`), and forgets those that nobody
needs any more (`forgetting.py`); none is given twice.

A client that does not say what it will publish may publish anything. So that content-based routing works
without advertisements, every broker makes one that stands for everything, `ANYTHING`, and each subscription
intersects it: subscriptions then reach every broker, and events only those that want them. Which other
advertisements a subscription intersects would change nothing, and to find out would take a comparison of
each with each: that is never asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache

from sojourn.interest import Advertisement, Event, Filter
from sojourn.interest.events import TOPIC
from sojourn.mqtt import costs
from sojourn.mqtt.content import TEXTS_MAX, parse_advertisement, parse_filter
from sojourn.routing.filter_interests import FilterInterests

TOPICS_MAX = 50_000
TOPIC_CHARS_MAX = 8 << 20
"""Topics of which it is remembered who wants them."""
FEW = 2_000
"""Of so many interests those that nobody uses are forgotten at once."""
UNUSED_SHARE = 0.1
"""Of more interests they are forgotten when they are this share of all."""
IDLE_MIN, IDLE_MAX = 40, 200
"""Subscriptions that nobody has and that events are compared with all the same, in case they come back."""
ANYTHING = "*"
"""The text of the advertisement that covers whatever may come."""


class LiveInterests(FilterInterests):
    """Interests by number, among them the advertisement of anything at all."""

    def __init__(self, *, covering: bool = True) -> None:
        super().__init__(covering=covering)
        self.anything = self.enter_ad(subs=())
        """It has no place among the others, so that it covers none and none covers it, whatever they say."""
        self.ads[self.anything] = Advertisement.parse("FALSE")
        self._idle: dict[int, None] = {}
        """Subscriptions that nobody has any more, and that events are still compared with."""
        self._paths: Counter[str] = Counter()
        """Every attribute besides the topic that subscriptions speak of, and how many of them do."""
        self._plain: dict[str, tuple[int, ...]] = {}
        """By topic: what events match that have none of those, so that their topic alone decides."""
        self.by_topic = self._plain
        self._topic_chars = 0
        """Characters of topics in there since it was last emptied for their sake."""

    @property
    def entered(self) -> int:
        """How many interests there ever were."""
        return self._ads_entered + self._subs_entered

    def _begin(self, number: int, wanted: Filter) -> None:
        """Do not compare events with a subscription before somebody has it."""

    def taken_up(self, sub: int) -> None:
        """Compare events with a subscription that somebody has now."""
        self.version += 1
        self._idle.pop(sub, None)
        if sub not in self.tried:
            self._try(sub, self.subs[sub])
            self._paths.update(_paths(self.subs[sub]))
            self._forget_topics()

    def let_go(self, sub: int) -> None:
        """Be ready to compare events no more with a subscription that nobody has.

        Many come back at once, so some are left. But there are never more of them than of the others: nobody
        who says one filter after the other makes events dear.
        """
        self._idle[sub] = None
        if len(self._idle) > min(IDLE_MAX, max(IDLE_MIN, len(self.tried) - len(self._idle))):
            idle, self._idle = [*self._idle], {}
            self._paths.subtract(path for one in idle for path in _paths(self.tried[one]))
            self._paths = +self._paths
            self._leave(idle)
            self._forget_topics()

    def try_only(self, held: Iterable[int]) -> None:
        """Compare events with those subscriptions that somebody has."""
        self._idle.clear()
        self.tried = {sub: self.subs[sub] for sub in held}
        self._paths = Counter(path for wanted in self.tried.values() for path in _paths(wanted))
        self.matcher.begin_anew(self.tried)
        self._forget_topics()

    def subs_meeting(self, ad: Advertisement) -> Iterable[int]:  # noqa: ARG002  (whatever it says)
        """The subscriptions to be sent for the sake of an advertisement of a client: they all are anyway."""
        return ()

    def ads_meeting(self, wanted: Filter) -> Iterable[int]:  # noqa: ARG002  (whatever it says)
        """The advertisement for whose sake a subscription is sent."""
        return (self.anything,)

    def wider_ads(self, ad: int) -> Iterable[int]:
        """Advertisements that may cover one; none covers anything at all."""
        return () if ad == self.anything else super().wider_ads(ad)

    def forget(self, ads: AbstractSet[int], subs: AbstractSet[int]) -> None:
        """Forget interests that nobody speaks of."""
        for sub in subs & self.tried.keys():
            self._idle.pop(sub, None)
            self._paths.subtract(_paths(self.tried[sub]))
        self._paths = +self._paths
        super().forget(ads, subs)
        self._forget_topics()

    def restore(
        self,
        ads: Mapping[int, Advertisement],
        subs: Mapping[int, Filter],
        ads_of: Mapping[int, Iterable[int]],
    ) -> None:
        """Be as another table was, given its interests by number and which of them intersect."""
        anything = {self.anything: self.ads[self.anything]}
        super().restore(anything | {**ads} | anything, subs, ads_of)
        if self._ad_numbers[self.ads[self.anything]] == self.anything:
            del self._ad_numbers[self.ads[self.anything]]
        self.try_only(())

    def _forget_topics(self) -> None:
        """Take in that other subscriptions are compared with events than before."""
        self._plain.clear()
        # While none speaks of anything but topics no event need be looked at.
        self.by_topic = {} if self._paths else self._plain

    def cost_of(self, topic: str) -> int:
        """What it costs to match an event on a topic that is not in `by_topic` (`mqtt/costs.py`)."""
        trials = costs.INDEXED if self.matcher.is_indexed else self.matcher.others // costs.TRIALS
        return trials + topic.count("/") // costs.LEVELS

    def match(self, event: Event) -> tuple[int, ...]:
        """The subscriptions that an event matches, in ascending order; by its topic where that decides."""
        paths = self._paths.keys()
        if paths and not (paths.isdisjoint(event.flat) and paths.isdisjoint(event.objects)):
            return super().match(event)
        topic = event.topic or ""
        found = self._plain.get(topic)
        if found is None:
            self._topic_chars += len(topic)
            if len(self._plain) >= TOPICS_MAX or self._topic_chars > TOPIC_CHARS_MAX:
                self._plain.clear()
                self._topic_chars = len(topic)
            found = self._plain[topic] = super().match(event)
        return found


class Names:
    """Clients, subscriptions and advertisements by number and by name."""

    def __init__(self, interests: LiveInterests) -> None:
        self.interests = interests
        self._numbers: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        """Of subscriptions that speak of attributes: these take long to write, and are told again whenever a
        client moves."""
        self._names: dict[int, str] = {}
        self._last = 0

    def client_name(self, number: int) -> str:
        """Return the identifier of a client."""
        return self._names[number]

    def knows_client(self, number: int) -> bool:
        """Whether a number is a client's."""
        return number in self._names

    def client_number(self, name: str) -> int:
        """Return the number of a client, a new one if it was never heard of."""
        number = self._numbers.get(name)
        if number is None:
            self._last += 1
            number = self._numbers[name] = self._last
            self._names[number] = name
        return number

    def known(self, name: str) -> int | None:
        """Return the number of a client, or None if it was never heard of."""
        return self._numbers.get(name)

    def reindex(self) -> None:
        """Find the numbers again, given the names."""
        self._numbers = {name: number for number, name in self._names.items()}

    @property
    def size(self) -> int:
        """How many names there are, besides the advertisement of anything."""
        return len(self._names) + len(self.interests.subs) + len(self.interests.ads) - 1

    @property
    def entered(self) -> int:
        """How many names there ever were."""
        return self._last + self.interests.entered

    def keep(
        self, clients: AbstractSet[int], advertisements: AbstractSet[int], subscriptions: AbstractSet[int]
    ) -> None:
        """Forget all names but these, which are in use.

        Interests are forgotten when there are enough of them: that costs time for each one that stays.
        """
        for number in [number for number in self._names if number not in clients]:
            del self._numbers[self._names.pop(number)]
        interests = self.interests
        ads = interests.ads.keys() - advertisements - {interests.anything}
        subs = interests.subs.keys() - subscriptions
        known = len(interests.ads) + len(interests.subs)
        if (ads or subs) and (known <= FEW or len(ads) + len(subs) >= UNUSED_SHARE * known):
            interests.forget(ads, subs)
            for number in subs & self._texts.keys():
                del self._texts[number]

    def subscription_text(self, number: int) -> str:
        """Return a subscription as text."""
        text = self._texts.get(number)
        if text is None:
            wanted = self.interests.subs[number]
            text = _text(wanted)
            if _paths(wanted):
                self._texts[number] = text
        return text

    def subscription_number(self, text: str) -> int:
        """Return the number of a subscription, entered if it is new."""
        return self.interests.subscription(parse_filter(text))

    def advertisement_text(self, number: int) -> str:
        """Return an advertisement as text."""
        return ANYTHING if number == self.interests.anything else str(self.interests.ads[number])

    def advertisement_number(self, text: str) -> int:
        """Return the number of an advertisement, entered if it is new."""
        if text == ANYTHING:
            return self.interests.anything
        return self.interests.advertisement(parse_advertisement(text))


@lru_cache(maxsize=TEXTS_MAX)
def _text(wanted: Filter) -> str:
    """The text of a filter, which is told every neighbour, and again whenever a client moves."""
    return str(wanted)


def _paths(wanted: Filter) -> set[str]:
    """The attributes besides the topic that a subscription speaks of."""
    return {path for each in wanted.conjunctions for path, _ in each.constraints if path != TOPIC}
