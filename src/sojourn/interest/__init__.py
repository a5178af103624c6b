"""What clients say: events, subscriptions, advertisements, topics, policies, and how they relate.

>>> from sojourn.interest import Event, Filter, covers
>>> cheap = Filter.parse("product = 'computer' AND price <= 1600")
>>> cheap.matches(Event({"product": "computer", "price": 1200}))
True
>>> covers(cheap, Filter.parse("product = 'computer' AND brand = 'IBM' AND price <= 1500"))
True
"""

from sojourn.interest.advertisements import Advertisement, AdvertisementError
from sojourn.interest.algebra import EVERYTHING, NOTHING, common_example, covers, example, intersects, merge
from sojourn.interest.events import Event, EventError
from sojourn.interest.filters import Conjunction, Filter, FilterTooComplexError
from sojourn.interest.policies import Policy, may_receive
from sojourn.interest.syntax import FilterSyntaxError
from sojourn.interest.topics import TopicError, TopicPattern
from sojourn.interest.values import Scalar, ValueSet

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Advertisement",
    "AdvertisementError",
    "Conjunction",
    "Event",
    "EventError",
    "Filter",
    "FilterSyntaxError",
    "FilterTooComplexError",
    "Policy",
    "Scalar",
    "TopicError",
    "TopicPattern",
    "ValueSet",
    "common_example",
    "covers",
    "example",
    "intersects",
    "may_receive",
    "merge",
]
