"""Exact sets of topics: any Boolean combination of topic patterns.

A `TopicSet` holds two views of the same set:

- `terms`, a union of patterns each less some patterns, is what is written and what an index walks;
- `root`, a decision diagram over levels, is what decides. A node says whether a topic may end here and
  which node follows for each range of next levels; equal nodes are one object, so sets are equal when
  their roots are identical.

The diagram is exact because no bound it uses falls between two level strings that can really occur.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakValueDictionary

from sojourn.interest.topics import ANY, HIDDEN, WILDCARDS_AND_SLASH, Level, Prefix, TopicPattern
from sojourn.interest.values import after
from sojourn.interest.work import COMBINING_STEPS, TopicsTooComplexError, Work, current

WIDE_TERMS_MAX = 64
STEPS_MAX = 1_600_000
"""What one combination may take where nobody said less: what was accepted once is read again with that."""
RELATION_STEPS_MAX = 20_000
"""What it may take to find whether a set lies in another, or has a topic in common with it."""


class Node:
    """A place in a topic: may it end here, and what follows for which next level.

    `edges` partitions the level strings by their lower bounds, the first of which is the empty string.
    """

    __slots__ = ("__weakref__", "edges", "ends")

    ends: bool
    edges: tuple[tuple[str, Node], ...]

    def __repr__(self) -> str:
        return "ALL" if self is _ALL else "NONE" if self is _NONE else f"Node({self.ends}, {self.edges!r})"

    def follow(self, level: str) -> Node:
        """Return the node after one more level."""
        return self.edges[bisect_right(self.edges, level, key=lambda edge: edge[0]) - 1][1]


def _loop(*, ends: bool) -> Node:
    node = Node()
    node.ends = ends
    node.edges = (("", node),)
    return node


_ALL = _loop(ends=True)
_NONE = _loop(ends=False)
_nodes: WeakValueDictionary[tuple[bool, tuple[tuple[str, int], ...]], Node] = WeakValueDictionary()


def _node(edges: Iterable[tuple[str, Node]], *, ends: bool) -> Node:
    """Return the one node with this content, its equal neighbouring edges joined."""
    joined: list[tuple[str, Node]] = []
    for low, child in edges:
        if not joined or joined[-1][1] is not child:
            joined.append((low, child))
    if len(joined) == 1 and joined[0][1] is (_ALL if ends else _NONE):
        return joined[0][1]
    key = (ends, tuple((low, id(child)) for low, child in joined))
    node = _nodes.get(key)
    if node is None:
        node = Node()
        node.ends = ends
        node.edges = tuple(joined)
        _nodes[key] = node
    return node


_END = _node([("", _NONE)], ends=True)
_SOME = _node([("", _ALL)], ends=False)
# A topic has at least one character, so one level that is empty is not a topic.
_FULL = _node([("", _SOME), (after(""), _ALL)], ends=False)


def _after_level_prefix(prefix: str) -> str | None:
    """Return the first level string above all that start with `prefix`, skipping what no level contains."""
    while prefix:
        code = ord(prefix[-1]) + 1
        while chr(min(code, 0x10FFFF)) in WILDCARDS_AND_SLASH or 0xD800 <= code <= 0xDFFF:
            code += 1
        if code <= 0x10FFFF:
            return prefix[:-1] + chr(code)
        prefix = prefix[:-1]
    return None


def _pattern_node(pattern: TopicPattern) -> Node:
    node = _ALL if pattern.rest else _END
    for i in range(len(pattern.levels) - 1, -1, -1):
        node = _level_node(pattern.levels[i], node, first=i == 0)
    if not pattern.levels:  # the pattern `#`
        node = _level_node(ANY, _ALL, first=True)
    return _combine(node, _FULL, _both)


def _level_node(level: Level, then: Node, *, first: bool) -> Node:
    if level == ANY:
        if not first:
            return _node([("", then)], ends=False)
        hidden_end = _after_level_prefix(HIDDEN)
        assert hidden_end is not None
        return _node([("", then), (HIDDEN, _NONE), (hidden_end, then)], ends=False)
    if isinstance(level, Prefix):
        low, high = level.text, _after_level_prefix(level.text)
    else:
        low, high = level, after(level)
    edges = [("", _NONE), (low, then)] if low else [("", then)]
    if high is not None:
        edges.append((high, _NONE))
    return _node(edges, ends=False)


def _both(one: bool, other: bool) -> bool:  # noqa: FBT001 - a function of two truths
    return one and other


def _either(one: bool, other: bool) -> bool:  # noqa: FBT001 - a function of two truths
    return one or other


def _combine(one: Node, other: Node, decide: Callable[[bool, bool], bool]) -> Node:
    return _Combination(decide).combine(one, other)


class _Combination:
    """Combines two diagrams. A function within a function that calls itself would be a circle of objects."""

    __slots__ = ("_decide", "_done", "_work")

    def __init__(self, decide: Callable[[bool, bool], bool]) -> None:
        self._decide = decide
        self._done: dict[tuple[int, int], Node] = {}
        self._work = current(STEPS_MAX)

    def combine(self, a: Node, b: Node) -> Node:
        """Return the diagram of both, or of either."""
        decide = self._decide
        if a is b:
            return a
        for x, y in ((a, b), (b, a)):
            if x is _ALL:
                return y if decide is _both else _ALL
            if x is _NONE:
                return _NONE if decide is _both else y
        key = (id(a), id(b))
        found = self._done.get(key)
        if found is None:
            self._work.spend(COMBINING_STEPS * (len(a.edges) + len(b.edges)))
            edges = [(low, self.combine(x, y)) for low, x, y in _walk(a.edges, b.edges)]
            found = self._done[key] = _node(edges, ends=decide(a.ends, b.ends))
        return found


def _walk(
    one: tuple[tuple[str, Node], ...], other: tuple[tuple[str, Node], ...]
) -> Iterator[tuple[str, Node, Node]]:
    """Yield the common refinement of two partitions of the level strings."""
    i = j = 0
    low = ""
    while True:
        yield low, one[i][1], other[j][1]
        next_i = one[i + 1][0] if i + 1 < len(one) else None
        next_j = other[j + 1][0] if j + 1 < len(other) else None
        if next_i is None and next_j is None:
            return
        if next_j is None or (next_i is not None and next_i <= next_j):
            assert next_i is not None
            low = next_i
            i += 1
            j += next_i == next_j
        else:
            low = next_j
            j += 1


def _complement(node: Node) -> Node:
    done: dict[int, Node] = {id(_ALL): _NONE, id(_NONE): _ALL}
    # At the root the empty sequence of levels flips too; the intersection with all topics mends that.
    return _combine(_flipped(node, done, current(STEPS_MAX)), _FULL, _both)


def _flipped(at: Node, done: dict[int, Node], work: Work) -> Node:
    found = done.get(id(at))
    if found is None:
        work.spend(COMBINING_STEPS * len(at.edges))
        found = _node([(low, _flipped(child, done, work)) for low, child in at.edges], ends=not at.ends)
        done[id(at)] = found
    return found


def _is_inside(one: Node, other: Node) -> bool:
    """Whether every topic of one diagram is in the other, found without making a diagram."""

    def sticks_out(a: Node, b: Node) -> bool | None:
        if a is b or a is _NONE or b is _ALL:
            return False
        # No other node than these two has all topics, or none.
        return True if a is _ALL or b is _NONE or (a.ends and not b.ends) else None

    return not _any_pair(one, other, sticks_out)


def _have_common(one: Node, other: Node) -> bool:
    """Whether two diagrams have a topic in common, found without making a diagram."""

    def meet(a: Node, b: Node) -> bool | None:
        if a is _NONE or b is _NONE:
            return False
        return True if a is b or a is _ALL or b is _ALL or (a.ends and b.ends) else None

    return _any_pair(one, other, meet)


def _any_pair(one: Node, other: Node, holds: Callable[[Node, Node], bool | None]) -> bool:
    """Whether something holds for two nodes that the same levels lead to; None has what follows decide."""
    work = current(RELATION_STEPS_MAX)
    waiting = [(one, other)]
    seen: set[tuple[int, int]] = set()
    while waiting:
        a, b = waiting.pop()
        answer = holds(a, b)
        if answer:
            return True
        key = (id(a), id(b))
        if answer is None and key not in seen:
            seen.add(key)
            work.spend(len(a.edges) + len(b.edges))
            waiting += [(x, y) for _, x, y in _walk(a.edges, b.edges)]
    return False


@dataclass(frozen=True, slots=True)
class Term:
    """The topics of one pattern less those of some others."""

    pattern: TopicPattern
    without: tuple[TopicPattern, ...] = ()

    def matches(self, topic: str) -> bool:
        """Whether a topic is in the term."""
        return self.pattern.matches(topic) and not any(pattern.matches(topic) for pattern in self.without)

    def node(self) -> Node:
        """Return the decision diagram of the term."""
        root = _pattern_node(self.pattern)
        if self.without:
            root = _combine(root, _complement(_union([_pattern_node(p) for p in self.without])), _both)
        return root


_EVERY_TOPIC = TopicPattern.starting_with("")


class TopicSet:
    """Any Boolean combination of topic patterns; equal when the topics are."""

    __slots__ = ("_simplified", "_terms", "root")

    root: Node
    _terms: tuple[Term, ...] | None
    """The set as written, not yet simplified; None for what is only reasoned about and never written."""
    _simplified: bool

    def __init__(self, root: Node, terms: tuple[Term, ...] | None = None) -> None:
        self.root = root
        self._terms = terms
        self._simplified = terms is None or len(terms) == 0

    @classmethod
    def of(cls, *patterns: TopicPattern) -> TopicSet:
        """Make the set of the topics that meet any of the patterns."""
        return cls(_union([_pattern_node(pattern) for pattern in patterns]), tuple(map(Term, patterns)))

    @classmethod
    def none(cls) -> TopicSet:
        """Make the empty set."""
        return _NO_TOPICS

    @classmethod
    def every(cls) -> TopicSet:
        """Make the set of all topics."""
        return _ALL_TOPICS

    @classmethod
    def of_terms(cls, terms: tuple[Term, ...]) -> TopicSet:
        """Make the union of terms."""
        return cls(_union([term.node() for term in terms]), terms)

    def __reduce__(self) -> tuple[Callable[..., TopicSet], tuple[tuple[Term, ...]]]:
        """Pickle what is written: nodes are one object each and must be looked up again."""
        return TopicSet.of_terms, (self.terms,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicSet) and self.root is other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def __repr__(self) -> str:
        return f"TopicSet({self._terms})"

    @property
    def terms(self) -> tuple[Term, ...]:
        """The set as a union of patterns each less some patterns, simplified when first asked for."""
        assert self._terms is not None, "only what was written is written back"
        if not self._simplified:
            with suppress(TopicsTooComplexError):  # it may be said in more words than it takes
                self._terms = _simplify(self._terms)
            self._simplified = True
        return self._terms

    def __bool__(self) -> bool:
        return self.root is not _NONE

    def __contains__(self, topic: str) -> bool:
        return _is_member(self.root, topic)

    def __invert__(self) -> TopicSet:
        root = _complement(self.root)
        if self._terms is None or any(term.without for term in self._terms):
            return TopicSet(root)
        return TopicSet(root, (Term(_EVERY_TOPIC, tuple(term.pattern for term in self._terms)),))

    def __and__(self, other: TopicSet) -> TopicSet:
        root = _combine(self.root, other.root, _both)
        if self._terms is None or other._terms is None:
            return TopicSet(root)
        if root is _NONE:
            return _NO_TOPICS
        mine, theirs = self._terms, other._terms
        if len(mine) * len(theirs) > WIDE_TERMS_MAX:
            mine, theirs = self.terms, other.terms
        met = [
            Term(both, (*a.without, *b.without))
            for a in mine
            for b in theirs
            if (both := a.pattern.meet(b.pattern)) is not None
        ]
        return TopicSet(root, _checked(met))

    def __or__(self, other: TopicSet) -> TopicSet:
        root = _combine(self.root, other.root, _either)
        if self._terms is None or other._terms is None:
            return TopicSet(root)
        return TopicSet(root, _checked([*self._terms, *other._terms]))

    def issubset(self, other: TopicSet) -> bool:
        """Whether every topic of this set is in the other; no, if that takes too long to tell."""
        try:
            return _is_inside(self.root, other.root)
        except TopicsTooComplexError:
            return False

    def overlaps(self, other: TopicSet) -> bool:
        """Whether some topic is in both; yes, if that takes too long to tell."""
        try:
            return _have_common(self.root, other.root)
        except TopicsTooComplexError:
            return True

    @property
    def writing_steps(self) -> int:
        """About how many patterns are compared until it is written, or joined with another of its size."""
        terms = self._terms or ()
        wide = sum(not term.pattern.is_exact for term in terms)
        return len(terms) * (1 + wide) + sum(len(term.without) ** 2 for term in terms)

    def unwritten(self) -> TopicSet:
        """Return the same set, to be reasoned about only: its combinations are never written."""
        return TopicSet(self.root)

    @property
    def only_value(self) -> str | None:
        """The one topic in it, or None when there are none or several."""
        if self._terms is not None and len(self.terms) == 1 and self.terms[0].pattern.is_exact:
            return str(self.terms[0].pattern)
        return None

    def witness(self) -> str:
        """Return one topic of a set that is not empty: breadth first, so one of few levels."""
        paths: list[tuple[tuple[str, ...], Node]] = [((), self.root)]
        while True:
            longer: list[tuple[tuple[str, ...], Node]] = []
            for path, node in paths:
                for low, child in node.edges:
                    level = "a" if node.follow("a") is child else low
                    if child.ends:
                        return "/".join((*path, level))
                    if child is not _NONE:
                        longer.append(((*path, level), child))
            paths = longer


_NO_TOPICS = TopicSet(_NONE, ())
_ALL_TOPICS = TopicSet(_FULL, (Term(_EVERY_TOPIC),))


def _is_member(node: Node, topic: str) -> bool:
    for level in topic.split("/"):
        if node is _ALL or node is _NONE:
            break
        node = node.follow(level)
    return node.ends


def _union(nodes: list[Node]) -> Node:
    """Unite many diagrams in pairs, so that no large one is walked for each small one."""
    while len(nodes) > 1:
        pairs = zip(nodes[::2], nodes[1::2], strict=False)
        nodes = [_combine(one, other, _either) for one, other in pairs] + nodes[len(nodes) & ~1 :]
    return nodes[0] if nodes else _NONE


def _checked(terms: list[Term]) -> tuple[Term, ...]:
    """Refuse to carry on with more alternatives than a filter may have; single topics do not count."""
    wide = {term for term in terms if not term.pattern.is_exact}
    if WIDE_TERMS_MAX < len(wide) <= WIDE_TERMS_MAX + 32:  # beyond, simplifying takes longer than it is worth
        terms = list(_simplify(terms))
        wide = {term for term in terms if not term.pattern.is_exact}
    if len(wide) > WIDE_TERMS_MAX:
        raise TopicsTooComplexError(
            f"A filter may offer at most {WIDE_TERMS_MAX} topic patterns to choose from."
        )
    return tuple(terms)


def _simplify(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Drop exclusions that exclude nothing or too little, and terms that are empty or inside another."""
    distinct = {Term(raw.pattern, _simplify_exclusions(raw)) for raw in terms}
    # Most sets are lists of single topics. These need no diagram: each is kept unless a wider term has it.
    wide = [term for term in distinct if not term.pattern.is_exact]
    kept = [term for term in distinct if term.pattern.is_exact and not term.without]
    kept = [term for term in kept if not any(other.matches(str(term.pattern)) for other in wide)]
    kept += [term for term in wide if not _is_empty_or_inside(term, wide)]
    return tuple(sorted(kept, key=_term_key))


def _is_empty_or_inside(term: Term, terms: list[Term]) -> bool:
    """Whether a term adds nothing to the others; of two that are the same set, the first in order stays."""
    plain = [other for other in terms if not other.without and other is not term]
    if any(other.pattern.contains(term.pattern) for other in plain):
        return True
    if not term.without and len(plain) == len(terms) - 1:
        return False
    node = term.node()
    return node is _NONE or any(
        _combine(node, other.node(), _either) is (both := other.node())
        and (node is not both or _term_key(other) < _term_key(term))
        for other in terms
        if other is not term
    )


def _simplify_exclusions(term: Term) -> tuple[TopicPattern, ...]:
    if not term.without:
        return ()
    met = {both for pattern in term.without if (both := term.pattern.meet(pattern)) is not None}
    wide = [pattern for pattern in met if not pattern.is_exact]
    maximal = [p for p in met if not any(other is not p and other.contains(p) for other in wide)]
    return tuple(sorted(maximal, key=str))


def _term_key(term: Term) -> tuple[str, tuple[str, ...]]:
    return str(term.pattern), tuple(str(pattern) for pattern in term.without)
