"""Which subscriptions a topic reaches.

Topic filters without wildcards stand in a dictionary; those with wildcards in a tree of levels. What was
found for a topic is kept as a `Route`, so that the next message on it costs one look-up whatever the number
of subscriptions; a change to the subscriptions lets the routes go that it may concern.

The owner of a subscription is any object with an identity of its own; here it is a session. Filters over
content are looked at later, by whoever delivers: a route only keeps them apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sojourn.interest import Filter
from sojourn.mqtt import costs

if TYPE_CHECKING:
    from sojourn.mqtt.filter_book import Tests
    from sojourn.mqtt.session import Session, Subscription

ROUTES_MAX = 50_000
ROUTE_BYTES_MAX = 64 << 20
"""About how many bytes all routes take that are remembered; beyond it they are found anew."""
ROUTE_BYTES, RECIPIENT_BYTES, CHARACTER_BYTES = 512, 128, 8
"""About what a route takes, besides each subscription that it leads to and each character of its topic."""


class Group:
    """Sessions that get a message in the same form: none of them has another subscription for the topic."""

    __slots__ = ("identifiers", "qos", "retain_as_published", "sessions")

    def __init__(self, qos: int, identifiers: tuple[int, ...], *, retain_as_published: bool) -> None:
        self.qos = qos
        self.identifiers = identifiers
        self.retain_as_published = retain_as_published
        self.sessions: list[Session] = []


class Route:
    """What is to be done with the messages of one topic."""

    __slots__ = (
        "by_session",
        "conditional",
        "cost",
        "filters",
        "groups",
        "picky",
        "several",
        "shares",
        "tests",
        "topic",
    )

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.groups: list[Group] = []
        """Sessions with one plain subscription, by the form they want: the fast way."""
        self.conditional: dict[Filter, list[Group]] = {}
        """The same for single subscriptions with a filter, by filter."""
        self.picky: list[Subscription] = []
        """Single subscriptions that want nothing of their own, with a filter or without."""
        self.several: list[list[Subscription]] = []
        """By session, the subscriptions of those that have more than one."""
        self.shares: list[Share] = []
        self.filters: list[Filter] = []
        """Every filter of all these."""
        self.tests: Tests = []
        """The same with their tests, once an event was tried (`filter_book.py`)."""
        self.by_session: dict[Session, list[Subscription]] = {}
        """All of them but the shared ones by session."""
        self.cost = 1
        """What an event on the topic costs (`costs.py`)."""


class Shape:
    """A topic filter that very many topics are compared with; levels that may be anything are passed over."""

    __slots__ = ("_exact", "_is_open", "_least", "_pick", "_wanted")

    def __init__(self, pattern: str) -> None:
        self._exact = pattern if _is_exact(pattern) else None
        wanted = pattern.split("/")
        self._is_open = wanted[0] in ("+", "#")
        """Whether its first level may be anything, but for one that begins with $."""
        has_rest = wanted[-1] == "#"
        if has_rest:
            wanted.pop()
        self._least = len(wanted) if has_rest else -len(wanted)
        """How many levels a topic has at least; if negative, how many exactly."""
        places = [place for place, level in enumerate(wanted) if level != "+"]
        self._pick = itemgetter(*places) if places else None
        self._wanted = self._pick(wanted) if self._pick is not None else None

    def meets(self, topic: str, levels: list[str]) -> bool:
        """Whether a topic, which has these levels, meets it."""
        if self._exact is not None:
            return self._exact == topic
        least = self._least
        if (len(levels) != -least) if least < 0 else (len(levels) < least):
            return False
        if self._pick is not None and self._pick(levels) != self._wanted:
            return False
        return not (self._is_open and topic.startswith("$"))


class Share:
    """A shared subscription: one of its members gets each message."""

    __slots__ = ("members", "shape", "turn", "turn_unsure")

    def __init__(self, pattern: str) -> None:
        self.shape = Shape(pattern)
        self.members: dict[Session, Subscription] = {}
        self.turn = 0
        """Counts messages of QoS 1 and 2."""
        self.turn_unsure = 0
        """Counts messages of QoS 0."""


class _Node:
    """A level of the tree: what follows it, and the subscriptions that end here."""

    __slots__ = ("below", "ends", "rests")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.ends: dict[Session, Subscription] = {}
        self.rests: dict[Session, Subscription] = {}
        """Subscriptions that end here with a #."""

    @property
    def is_empty(self) -> bool:
        return not (self.below or self.ends or self.rests)


_Place = tuple[list[str], dict["Session", "Subscription"], dict["Session", "Subscription"]]
"""The levels of a node, and what ends there, without and with a #."""


class TopicTree:
    """All subscriptions of a broker by topic filter."""

    def __init__(self) -> None:
        self._exact: dict[str, dict[Session, Subscription]] = {}
        self._root = _Node()
        self._shares: dict[tuple[str, str], Share] = {}
        """By name of the share and topic filter."""
        self.routes: dict[str, Route] = {}
        """What was found for topics so far (`route`)."""
        self._route_bytes = 0
        """About what was put in there since it was last emptied."""
        self.looked = 0
        """How many places of the tree were looked at so far."""
        self.by_bytes: dict[bytes, Route] = {}
        """The routes by their topics' bytes, for whoever has no text yet; not of topics that begin with $,
        which have to be looked at more closely."""

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the routes, which are found again; the tree, which may be deep, as a flat list."""
        return self.__dict__ | {"routes": {}, "by_bytes": {}, "_root": self._flat()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state, and make the tree again."""
        self.__dict__.update(state)
        places: list[_Place] = state["_root"]
        self._root = _Node()
        for levels, ends, rests in places:
            node = self._node(levels)
            node.ends, node.rests = ends, rests

    def _flat(self) -> list[_Place]:
        """The nodes of the tree at which subscriptions end, with their levels."""
        found: list[_Place] = []
        levels: list[str] = []
        waiting = [(0, "", self._root)]
        while waiting:
            depth, level, node = waiting.pop()
            levels[max(0, depth - 1) :] = [level] if depth else []
            if node.ends or node.rests:
                found.append((levels[:], node.ends, node.rests))
            waiting += [(depth + 1, name, below) for name, below in node.below.items()]
        return found

    def add(self, subscription: Subscription) -> None:
        """Enter a subscription, in place of the owner's earlier one for the same topic filter."""
        if subscription.share:
            key = (subscription.share, subscription.pattern)
            share = self._shares.get(key)
            if share is None:
                share = self._shares[key] = Share(subscription.pattern)
            share.members[subscription.session] = subscription
        else:
            self._place(subscription.pattern)[subscription.session] = subscription
        self._forget_routes(subscription.pattern)

    def remove(self, subscription: Subscription) -> None:
        """Take a subscription out."""
        if subscription.share:
            key = (subscription.share, subscription.pattern)
            share = self._shares[key]
            del share.members[subscription.session]
            if not share.members:
                del self._shares[key]
        elif _is_exact(subscription.pattern):
            owners = self._exact[subscription.pattern]
            del owners[subscription.session]
            if not owners:
                del self._exact[subscription.pattern]
        else:
            self._remove_below(subscription)
        self._forget_routes(subscription.pattern)

    def subscriptions(self) -> Iterator[Subscription]:
        """Yield all subscriptions but the shared ones, those of each topic filter in their order."""
        for owners in self._exact.values():
            yield from owners.values()
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            yield from node.ends.values()
            yield from node.rests.values()
            waiting += reversed(node.below.values())

    @property
    def groups(self) -> Collection[tuple[str, str]]:
        """Names and topic filters of all shared subscriptions."""
        return self._shares.keys()

    def shares(self) -> Iterator[Share]:
        """Yield all shared subscriptions, in their order."""
        yield from self._shares.values()

    def restore(
        self,
        subscriptions: Iterable[Subscription],
        shares: Iterable[tuple[int, int, Iterable[Subscription]]],
    ) -> None:
        """Enter what was entered before: subscriptions, and the two counts and the members of shares."""
        for one in subscriptions:
            self.add(one)
        for turn, turn_unsure, members in shares:
            share: Share | None = None
            for one in members:
                if share is None:
                    share = self._shares[one.share, one.pattern] = Share(one.pattern)
                    share.turn, share.turn_unsure = turn, turn_unsure
                share.members[one.session] = one

    def route(self, topic: str) -> Route:
        """Return what is to be done with messages of a topic."""
        route = self.routes.get(topic)
        if route is None:
            route = self.find(topic)
            recipients = route.cost * costs.RECIPIENTS
            size = ROUTE_BYTES + RECIPIENT_BYTES * recipients + CHARACTER_BYTES * len(topic)
            self._route_bytes += size
            if len(self.routes) >= ROUTES_MAX or self._route_bytes > ROUTE_BYTES_MAX:
                self._forget_all_routes()
                self._route_bytes = size
            self.routes[topic] = route
            if not topic.startswith("$"):
                self.by_bytes[topic.encode()] = route
        return route

    def _forget_routes(self, pattern: str) -> None:
        if _is_exact(pattern):
            self.routes.pop(pattern, None)
            self.by_bytes.pop(pattern.encode(), None)
        else:
            self._forget_all_routes()

    def _forget_all_routes(self) -> None:
        self.routes.clear()
        self.by_bytes.clear()
        self._route_bytes = 0

    def _place(self, pattern: str) -> dict[Session, Subscription]:
        if _is_exact(pattern):
            return self._exact.setdefault(pattern, {})
        levels = pattern.split("/")
        rest = levels[-1] == "#"
        node = self._node(levels[:-1] if rest else levels)
        return node.rests if rest else node.ends

    def _node(self, levels: list[str]) -> _Node:
        """The node at the end of some levels, made if there is none."""
        node = self._root
        for level in levels:
            below = node.below.get(level)
            if below is None:
                below = node.below[level] = _Node()
            node = below
        return node

    def _remove_below(self, subscription: Subscription) -> None:
        levels = subscription.pattern.split("/")
        rest = levels[-1] == "#"
        if rest:
            levels.pop()
        path = [self._root]
        for level in levels:
            path.append(path[-1].below[level])
        del (path[-1].rests if rest else path[-1].ends)[subscription.session]
        for depth in range(len(levels), 0, -1):
            if not path[depth].is_empty:
                break
            del path[depth - 1].below[levels[depth - 1]]

    def find(self, topic: str) -> Route:
        """Find out what is to be done with messages of a topic, and do not remember it."""
        route = Route(topic)
        by_session = route.by_session
        for owners in self.owners(topic):
            for session, subscription in owners.items():
                by_session.setdefault(session, []).append(subscription)
        singles: dict[Filter | None, list[Subscription]] = {}
        for found in by_session.values():
            if len(found) > 1:
                route.several.append(found)
            elif found[0].no_local:
                route.picky.append(found[0])
            else:
                singles.setdefault(found[0].filter, []).append(found[0])
        for condition, subscriptions in singles.items():
            if condition is None:
                route.groups = _grouped(subscriptions)
            else:
                route.conditional[condition] = _grouped(subscriptions)
        if self._shares:
            levels = topic.split("/")
            route.shares = [share for share in self._shares.values() if share.shape.meets(topic, levels)]
            self.looked += len(self._shares)
        members = [one for share in route.shares for one in share.members.values()]
        everyone = [one for found in by_session.values() for one in found] + members
        route.filters = list(dict.fromkeys(one.filter for one in everyone if one.filter is not None))
        route.cost = 1 + len(everyone) // costs.RECIPIENTS + len(route.filters) // costs.TRIALS
        return route

    def owners(self, topic: str) -> list[dict[Session, Subscription]]:
        """Return the subscriptions that a topic meets, but shared ones, by topic filter and session."""
        found = []
        exact = self._exact.get(topic)
        if exact:
            found.append(exact)
        # A wildcard in first place does not stand for a level that begins with $ (MQTT 5, section 4.7.2).
        levels = topic.split("/")
        nodes = [self._root]
        for depth, level in enumerate(levels):
            hidden = depth == 0 and level.startswith("$")
            following = []
            self.looked += len(nodes)
            for node in nodes:
                if node.rests and not hidden:
                    found.append(node.rests)
                below = node.below.get(level)
                if below is not None:
                    following.append(below)
                if not hidden:
                    below = node.below.get("+")
                    if below is not None:
                        following.append(below)
            nodes = following
        for node in nodes:
            if node.ends:
                found.append(node.ends)
            if node.rests:  # # stands for the parent level too
                found.append(node.rests)
        return found


def _grouped(subscriptions: list[Subscription]) -> list[Group]:
    """Put those together that want the same form."""
    groups: dict[tuple[object, ...], Group] = {}
    for one in subscriptions:
        key = (one.qos, one.identifiers, one.retain_as_published)
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(one.qos, one.identifiers, retain_as_published=one.retain_as_published)
        group.sessions.append(one.session)
    return list(groups.values())


def _is_exact(pattern: str) -> bool:
    return "+" not in pattern and "#" not in pattern


def pattern_matches(pattern: str, topic: str) -> bool:
    """Whether a topic meets a topic filter."""
    if _is_exact(pattern):
        return pattern == topic
    wanted, levels = pattern.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    if wanted[-1] == "#":
        wanted.pop()
        if len(levels) < len(wanted):
            return False
    elif len(levels) != len(wanted):
        return False
    return all(mine in ("+", level) for mine, level in zip(wanted, levels, strict=False))
