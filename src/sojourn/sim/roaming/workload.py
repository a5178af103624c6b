"""What roaming subscribers want and what is published: one number per event, one interval per subscriber.

An event carries `value`, uniform over 0 to 99; a subscriber wants an interval of values as wide as its
selectivity says, its beginning uniform (paper 001 says only that each gets about 20% of all messages, and
that larger populations share more interests). The interests of a value are found once, so that publishing
costs no search.
"""

import numpy as np

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.routing.filter_interests import FilterInterests
from sojourn.routing.messages import Publish

VALUES = 100


class Publication(Publish):
    """An event on its way, which knows when it set out and how many brokers still have to handle it."""

    __slots__ = ("counted", "outstanding", "publisher", "time_s", "value")

    def __init__(self, event: Event, publisher: int, value: int) -> None:
        super().__init__(event)
        self.publisher = publisher
        self.value = value
        self.time_s = 0.0
        self.counted = False
        self.outstanding = 0


class RoamingWorkload:
    """The interests of a run, and its events."""

    def __init__(self, subscribers: int, selectivity: float, draw: np.random.Generator, *, covering: bool):
        self.interests = FilterInterests(covering=covering)
        self.advertisement = self.interests.advertisement(
            Advertisement.parse(f"value BETWEEN 0 AND {VALUES - 1}")
        )
        width = max(1, round(selectivity * VALUES))
        starts = draw.integers(VALUES - width + 1, size=subscribers).tolist()
        self.texts = [f"value BETWEEN {start} AND {start + width - 1}" for start in starts]
        """By subscriber: its filter."""
        self.subs = [self.interests.subscription(Filter.parse(text)) for text in self.texts]
        """By subscriber: its subscription's number."""
        self.matched = [self.interests.match(Event({"value": value})) for value in range(VALUES)]
        """By value: the subscriptions that want it."""

    def publication(self, publisher: int, sequence: int, value: int) -> Publication:
        """The next event of a publisher."""
        event = Event({"value": value}, source=f"p{publisher}", sequence=sequence)
        publication = Publication(event, publisher, value)
        publication.matched = self.matched[value]
        publication.version = self.interests.version
        return publication
