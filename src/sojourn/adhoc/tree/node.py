"""SHOPPARENT: one node's core (paper 002, section 3.2). Takes a fact and the time, answers with effects.

How it works:
1. A node without a parent broadcasts a PARENT-PROBE; neighbours with a route answer with a PARENT-ADVERTISE.
   It asks the one with the least metric to be its parent. Without an answer it probes again later.
2. Every node beacons its PARENT-ADVERTISE. A neighbour not heard of for `timeout_s` is forgotten; if it was
   the parent, the node probes anew; if it was a child, its interests are dropped.
3. At its turn (timer `shop`) a node compares its parent with all neighbours it has heard. If one seems
   better, it probes, and switches (timer `choose`) if one is strictly better by the answers. Beacons alone
   are up to a period old: two nodes that each go where the other was last seen would chase each other for
   minutes. Equal metrics: fewer hops, then the lesser draw.
4. When what its children ask for grows or shrinks, a node tells its parent. When its route changes, it tells
   its children.

No circles, ever. What neighbours advertised may be out of date, so before it hangs anywhere a node sends a
RouteCheck up the actual parents of its candidate. It is refused by the origin itself, by any node that is
asking too, and by a node without a parent; it is granted by the root. Suppose a circle closed. Of its nodes
let v be the one that began to ask last. Its check went along the circle, since the others had switched by
then or were still asking, which refuses; so it came back to v, which refuses. Hence v was not granted.

Not here: radio, clocks, draws (the driver's), events (`publishing.py`).
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import Interest
from sojourn.adhoc.tree.messages import (
    Effect,
    Fact,
    Heard,
    Hop,
    Join,
    Leave,
    Message,
    ParentAdvertise,
    ParentChanged,
    ParentProbe,
    RouteAnswer,
    RouteCheck,
    Say,
    SetTimer,
    Started,
    TimerFired,
    Update,
)
from sojourn.adhoc.tree.metrics import CHOOSES_ONCE, Candidate, Station, metric_named
from sojourn.adhoc.tree.overhead import Costs
from sojourn.adhoc.tree.states import Attachment, Step, after

HOPS_MAX = 1000
"""A check that was passed on more often than this is refused."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long; the paper gives no numbers."""

    beacon_s: float = 1.0
    """Between two beacons, and between two turns to shop."""
    timeout_s: float = 3.5
    """Silence after which a neighbour is forgotten: three beacons missed, and half a period for jitter."""
    answer_s: float = 0.1
    """How long answers to a probe are collected."""
    grant_s: float = 0.5
    """How long an answer to a check is waited for."""
    retry_s: float = 1.0
    """Between two probes of a node that finds nobody."""
    news_at_once: bool = True
    """Whether a change is told at once; otherwise it waits for the next beacon, at every hop anew."""

    def __post_init__(self) -> None:
        for name in ("beacon_s", "timeout_s", "answer_s", "grant_s", "retry_s"):
            if not getattr(self, name) > 0:
                raise AdhocError(f"{name} must be above 0, not {getattr(self, name):g}.")
        if self.timeout_s <= self.beacon_s:
            raise AdhocError(
                f"timeout_s must be above beacon_s ({self.beacon_s:g}), not {self.timeout_s:g}, or parents "
                "that are there would be forgotten."
            )


class Choosing(NamedTuple):
    """How a node chooses."""

    metric: str = "combo"
    costs: Costs = Costs()
    ties_by_hops: bool = True
    draw: Callable[[int], float] = lambda _node: 0.0
    """By neighbour: a number between 0 and 1 to tell equals apart."""
    errors: Callable[[int], tuple[float, float]] = lambda _node: (0.0, 0.0)
    """By neighbour: relative errors for `comboerr`."""


class _Neighbour(NamedTuple):
    advert: ParentAdvertise
    heard_s: float


class ShopParent:
    """One node of one publish/subscribe tree."""

    def __init__(self, node: int, tree: int, inherent: Interest, choosing: Choosing, timing: Timing) -> None:
        self.node = node
        self.tree = tree
        self.inherent = inherent
        self.state = Attachment.ALONE
        self.parent: int | None = None
        self.children: dict[int, Interest] = {}
        """What each child asks for."""
        self.proxied = self._nothing = inherent - inherent
        self._sole = self._nothing
        self._reported: Interest = self._nothing
        """What the parent was last told; nothing without one."""
        self._neighbours: dict[int, _Neighbour] = {}
        self._child_heard_s: dict[int, float] = {}
        self._asking: int | None = None
        self._token = 0
        self._chose = choosing
        self._metric = metric_named(choosing.metric)
        self._timing = timing

    # ------------------------------------------------------------------------ what it knows

    @property
    def is_root(self) -> bool:
        """Whether this node publishes the tree's events."""
        return self.node == self.tree

    @property
    def effective(self) -> Interest:
        """What it asks of its parent."""
        return self.inherent | self.proxied

    def route(self) -> tuple[Hop, ...] | None:
        """From the parent to the root, as far as is known; None without a route."""
        if self.is_root:
            return ()
        known = self._neighbours.get(self.parent) if self.parent is not None else None
        if known is None or known.advert.route is None:
            return None
        advert = known.advert
        mine = self.node in advert.children
        others = advert.proxied - (advert.sole & self._reported) if mine else advert.proxied
        return (Hop(node=advert.sender, inherent=advert.inherent, others=others), *known.advert.route)

    def advertise(self) -> ParentAdvertise:
        """What a beacon says."""
        return ParentAdvertise(
            tree=self.tree,
            sender=self.node,
            route=self.route(),
            inherent=self.inherent,
            proxied=self.proxied,
            sole=self._sole,
            children=frozenset(self.children),
        )

    # ------------------------------------------------------------------------ facts

    def handle(self, fact: Fact, now_s: float) -> list[Effect]:
        """Take a fact in and say what is to be done."""
        match fact:
            case Heard(message):
                return self._on_message(message, now_s)
            case TimerFired():
                return self._on_timer(fact, now_s)
            case Started():
                return self._on_start()
        raise AssertionError(f"{type(fact).__name__} is not for a tree's core")

    def _on_start(self) -> list[Effect]:
        beacon = SetTimer(name="beacon", delay_s=self._timing.beacon_s, periodic=True)
        return [beacon] if self.is_root else [beacon, *self._probe()]

    def _on_timer(self, fact: TimerFired, now_s: float) -> list[Effect]:
        match fact.name:
            case "beacon":
                again = SetTimer(name="beacon", delay_s=self._timing.beacon_s, periodic=True)
                effects = self._forget_silent(now_s)
                if self.parent is not None:
                    self._reported = self.effective  # the beacon tells the parent, too
                return [*effects, Say(self.advertise()), again]
            case "shop":
                return self._on_turn(fact.handicaps)
            case "choose":
                return self._on_choice(fact.handicaps)
            case "retry":
                return self._probe() if self.state is Attachment.ALONE else []
            case "grant":
                return self._on_answer(fact.token, granted=False)
        raise AssertionError(f"no timer is called {fact.name}")

    def _on_message(self, message: Message, now_s: float) -> list[Effect]:
        if message.to is not None and message.to != self.node:
            return []
        match message:
            case ParentAdvertise():
                return self._on_advertise(message, now_s)
            case ParentProbe():
                return [Say(self.advertise())] if self.route() is not None else []
            case Join() | Update():
                return self._on_asked(message.sender, message.asked, now_s)
            case Leave():
                return self._on_left(message.sender)
            case RouteCheck():
                return self._on_check(message)
            case RouteAnswer():
                return self._on_answer_message(message)
        raise AssertionError(f"{type(message).__name__} is not for a tree's core")

    # ------------------------------------------------------------------------ neighbours

    def _on_advertise(self, advert: ParentAdvertise, now_s: float) -> list[Effect]:
        before = self._neighbours.get(advert.sender)
        self._neighbours[advert.sender] = _Neighbour(advert, now_s)
        effects: list[Effect] = []
        if advert.sender in self.children and advert.parent != self.node:
            effects += self._on_left(advert.sender)
        elif advert.parent == self.node:
            # A Join or Update may have been missed; the beacon says the same.
            effects += self._on_asked(advert.sender, advert.inherent | advert.proxied, now_s)
        if advert.sender == self.parent:
            if advert.route is None or any(hop.node == self.node for hop in advert.route):
                return [*effects, *self._lose_parent()]
            if before is None or _ids(before.advert) != _ids(advert):
                effects += self._news()
        return effects

    def _news(self) -> list[Effect]:
        """Tell where this node hangs now, unless that waits for the next beacon."""
        return [Say(self.advertise())] if self._timing.news_at_once else []

    def _forget_silent(self, now_s: float) -> list[Effect]:
        """Forget neighbours that were not heard of for too long, whatever they were to this node."""
        oldest = now_s - self._timing.timeout_s
        silent = [node for node, known in self._neighbours.items() if known.heard_s < oldest]
        for node in silent:
            del self._neighbours[node]
        effects: list[Effect] = []
        for child in [child for child in self.children if self._child_heard_s[child] < oldest]:
            effects += self._on_left(child)
        if self.parent is not None and self.parent not in self._neighbours:
            effects += self._lose_parent()
        return effects

    def _lose_parent(self) -> list[Effect]:
        self.parent, self._reported = None, self._nothing
        self.state = after(self.state, Step.LOST)
        # The beacon without a route tells the children at once; each looks for itself.
        effects: list[Effect] = [ParentChanged(None), *self._news()]
        return effects if self.state is Attachment.JOINING else [*effects, *self._probe()]

    def _probe(self) -> list[Effect]:
        return [
            Say(ParentProbe(tree=self.tree, sender=self.node)),
            SetTimer(name="choose", delay_s=self._timing.answer_s),
        ]

    # ------------------------------------------------------------------------ children

    def _on_asked(self, child: int, asked: Interest, now_s: float) -> list[Effect]:
        self._child_heard_s[child] = now_s
        if self.children.get(child) == asked:
            return []
        self.children[child] = asked
        return self._recount()

    def _on_left(self, child: int) -> list[Effect]:
        if self.children.pop(child, None) is None:
            return []
        del self._child_heard_s[child]
        return self._recount()

    def _recount(self) -> list[Effect]:
        """Work out what is proxied, and tell the parent if that changes what is asked of it."""
        once = twice = self._nothing
        for asked in self.children.values():
            twice = twice | (once & asked)
            once = once | asked
        self.proxied, self._sole = once, once - twice
        effective = self.effective
        if self.parent is None or effective == self._reported or not self._timing.news_at_once:
            return []
        self._reported = effective
        return [Say(Update(tree=self.tree, sender=self.node, to=self.parent, asked=effective))]

    # ------------------------------------------------------------------------ shopping

    def _on_turn(self, handicaps: dict[int, float]) -> list[Effect]:
        """Look around; if another parent seems better, ask all neighbours how things stand by now."""
        if self.is_root or self.state in (Attachment.ALONE, Attachment.JOINING):
            return []
        again = SetTimer(name="shop", delay_s=self._timing.beacon_s, periodic=True)
        if self.state is Attachment.SWITCHING or self._shop(handicaps) == self.parent:
            return [again]
        return [again, *self._probe()]

    def _on_choice(self, handicaps: dict[int, float]) -> list[Effect]:
        """The answers are there: ask the best to be the parent."""
        if self.is_root or self.state in (Attachment.JOINING, Attachment.SWITCHING):
            return []
        best = self._shop(handicaps)
        if best is not None and best != self.parent:
            return self._ask(best)
        alone = self.state is Attachment.ALONE
        return [SetTimer(name="retry", delay_s=self._timing.retry_s, periodic=True)] if alone else []

    def _shop(self, handicaps: dict[int, float]) -> int | None:
        """The best parent in reach; the present one unless another is strictly better."""
        if self.parent is not None and self._chose.metric in CHOOSES_ONCE:
            return self.parent
        asked = self.effective
        ranked = []
        for candidate in self.candidates():
            value = self._metric(candidate, asked, self._chose.costs) + handicaps.get(candidate.node, 0.0)
            hops = candidate.hops if self._chose.ties_by_hops else 0
            ranked.append(((value, hops), candidate.draw, candidate.node))
        if not ranked:
            return self.parent
        rank, _, best = min(ranked)
        present = [rank for rank, _, node in ranked if node == self.parent]
        return self.parent if present and not rank < present[0] else best

    def candidates(self) -> list[Candidate]:
        """Every neighbour with a route that does not lead through this node, as it would be without it."""
        without = self._ancestors_without_me()
        found = []
        for node, known in self._neighbours.items():
            route = known.advert.route
            if route is None or any(hop.node == self.node for hop in route):
                continue
            stations = [Station(known.advert.inherent, without.get(node, known.advert.proxied))]
            for hop in route:
                below = stations[-1].inherent | stations[-1].proxied
                stations.append(Station(hop.inherent, without.get(hop.node, hop.others | below)))
            found.append(Candidate(node, tuple(stations), self._chose.draw(node), self._chose.errors(node)))
        return found

    def _ancestors_without_me(self) -> dict[int, Interest]:
        """By ancestor: what it would forward if this node were not below it (O^-i of section 3.2)."""
        route = self.route() if self.parent is not None else None
        without: dict[int, Interest] = {}
        below = self._nothing
        for hop in route or ():
            without[hop.node] = hop.others | below
            below = hop.inherent | without[hop.node]
        return without

    def _ask(self, candidate: int) -> list[Effect]:
        self.state = after(self.state, Step.ASKED)
        self._asking = candidate
        self._token += 1
        check = RouteCheck(
            tree=self.tree,
            sender=self.node,
            to=candidate,
            origin=self.node,
            token=self._token,
            path=(self.node,),
        )
        return [Say(check), SetTimer(name="grant", delay_s=self._timing.grant_s, token=self._token)]

    def _on_check(self, check: RouteCheck) -> list[Effect]:
        refused = (
            check.origin == self.node
            or self._asking is not None
            or (self.parent is None and not self.is_root)
            or len(check.path) > HOPS_MAX
        )
        if refused or self.is_root:
            return [Say(self._answer(check.origin, check.token, check.path, granted=not refused))]
        assert self.parent is not None
        onward = msgspec.structs.replace(
            check, sender=self.node, to=self.parent, path=(*check.path, self.node)
        )
        return [Say(onward)]

    def _answer(self, origin: int, token: int, path: tuple[int, ...], *, granted: bool) -> RouteAnswer:
        return RouteAnswer(
            tree=self.tree,
            sender=self.node,
            to=path[-1],
            origin=origin,
            token=token,
            path=path[:-1],
            granted=granted,
        )

    def _on_answer_message(self, answer: RouteAnswer) -> list[Effect]:
        if answer.origin == self.node:
            return self._on_answer(answer.token, granted=answer.granted)
        if not answer.path:
            return []
        return [Say(self._answer(answer.origin, answer.token, answer.path, granted=answer.granted))]

    def _on_answer(self, token: int, *, granted: bool) -> list[Effect]:
        """The candidate answered, or did not in time; an answer to an older question is nothing."""
        if self._asking is None or token != self._token:
            return []
        chosen, self._asking = self._asking, None
        self.state = after(self.state, Step.GRANTED if granted else Step.REFUSED)
        if not granted:
            alone = self.state is Attachment.ALONE
            return [SetTimer(name="retry", delay_s=self._timing.retry_s, periodic=True)] if alone else []
        before, self.parent = self.parent, chosen
        self._reported = self.effective
        effects: list[Effect] = [
            ParentChanged(chosen),
            Say(Join(tree=self.tree, sender=self.node, to=chosen, asked=self._reported)),
        ]
        if before is not None:
            effects.append(Say(Leave(tree=self.tree, sender=self.node, to=before)))
        else:
            effects.append(SetTimer(name="shop", delay_s=self._timing.beacon_s, periodic=True))
        return [*effects, *self._news()]


def _ids(advert: ParentAdvertise) -> tuple[int, ...] | None:
    return None if advert.route is None else tuple(hop.node for hop in advert.route)
