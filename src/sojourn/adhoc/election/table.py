"""What a broker of an ad-hoc network keeps: who wants what, and the events of its part of the network.

A broker keeps every event, wanted or not: a displayer that another part of the network has may want it, and
nobody here knows. When two brokers merge, each side's events meet the other side's displayers.

Rules: an entry that was not refreshed for `lifetime_s` is dropped (its displayer comes back with a whole
refresh); at most `events_max` events, `BYTES_MAX` of them and `displayers_max` entries are kept: the oldest
go first.
"""

from collections import OrderedDict
from collections.abc import Iterable

from sojourn.adhoc.election.messages import Custody, Entry, EventId, Kept, Refresh
from sojourn.adhoc.election.portions import portion, size_of

EVENTS_MAX = 10_000
BYTES_MAX = 32 << 20
"""Of what all events count for: so much can be handed over in one message."""
DISPLAYERS_MAX = 10_000


class _Served:
    """A displayer and what it is still owed."""

    __slots__ = ("owed", "refreshed_s", "seen", "sent_s", "since_s", "wanted")

    def __init__(self, entry: Entry) -> None:
        self.wanted = entry.wanted
        self.since_s = entry.since_s
        self.refreshed_s = entry.refreshed_s
        self.seen = set(entry.seen)
        self.owed: OrderedDict[EventId, Kept] = OrderedDict()
        self.sent_s: dict[EventId, float] = {}


class BrokerTable:
    """Displayers and events of one broker."""

    def __init__(self, lifetime_s: float, events_max: int = EVENTS_MAX) -> None:
        self._lifetime_s = lifetime_s
        self._events_max = events_max
        self._served: dict[int, _Served] = {}
        self._events: OrderedDict[EventId, Kept] = OrderedDict()
        self._bytes = 0

    @property
    def displayers(self) -> frozenset[int]:
        """Who has an entry."""
        return frozenset(self._served)

    @property
    def events(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def wants(self, displayer: int) -> object:
        """What a displayer's entry says it wants, None without one."""
        served = self._served.get(displayer)
        return None if served is None else served.wanted

    def refresh(self, displayer: int, refresh: Refresh, now: float) -> bool:
        """Take a refresh; False means that a whole one is needed."""
        served = self._served.get(displayer)
        if served is None or served.wanted != refresh.wanted or served.since_s != refresh.since_s:
            if not refresh.whole:
                return False
            entry = Entry(displayer, refresh.wanted, refresh.since_s, now, frozenset(refresh.seen))
            self._enter(entry)
            return True
        served.refreshed_s = now
        self._saw(served, refresh.seen)
        return True

    def lacks(self, kept: Kept) -> bool:
        """Whether an event is not kept here, or only as a copy of what this one answers for."""
        known = self._events.get(kept.id)
        return known is None or (known.is_copy and kept.custody is not None)

    def unseen_to(self) -> list[Kept]:
        """What the fixed network is still to be offered: streams in their order, as published."""
        streams: dict[tuple[int, ...], list[tuple[Custody, Kept]]] = {}
        for kept in self._events.values():
            if kept.custody is not None and not kept.is_seen_to:
                streams.setdefault(kept.custody[:2], []).append((kept.custody, kept))
        found = []
        for stream in streams.values():
            latest = 0.0
            for custody, kept in sorted(stream, key=lambda pair: pair[0]):
                latest = max(latest, kept.published_s)
                found.append((latest, custody, kept))
        return [kept for *_, kept in sorted(found, key=lambda each: each[:2])]

    def see_to(self, event: EventId) -> bool:
        """Note that the fixed network has an event; whether that is news."""
        kept = self._events.get(event)
        if kept is None or kept.is_seen_to:
            return False
        self._events[event] = kept._replace(is_seen_to=True)
        return True

    def store(self, events: Iterable[Kept]) -> list[Kept]:
        """Keep events; says which are new."""
        new = []
        for kept in events:
            if not self.lacks(kept):
                continue
            is_known = kept.id in self._events
            self._events[kept.id] = kept
            new.append(kept)
            if is_known:
                continue
            for served in self._served.values():
                self._owe(served, kept)
            self._bytes += size_of(kept)
            while len(self._events) > self._events_max or (self._bytes > BYTES_MAX and len(self._events) > 1):
                self._forget_oldest()
        return new

    def _forget_oldest(self) -> None:
        oldest, kept = self._events.popitem(last=False)
        self._bytes -= size_of(kept)
        for served in self._served.values():
            served.owed.pop(oldest, None)
            served.seen.discard(oldest)
            served.sent_s.pop(oldest, None)

    def due(self, displayer: int, now: float, again_s: float) -> tuple[Kept, ...]:
        """What a displayer is owed and was not sent within the last `again_s`; it counts as sent now."""
        served = self._served.get(displayer)
        if served is None:
            return ()
        due = tuple(
            portion(
                kept
                for event, kept in served.owed.items()
                if now - served.sent_s.get(event, -again_s) >= again_s
            )
        )
        served.sent_s.update((kept.id, now) for kept in due)
        return due

    def saw(self, displayer: int, ids: Iterable[EventId]) -> None:
        """A displayer has seen these."""
        served = self._served.get(displayer)
        if served is not None:
            self._saw(served, ids)

    def expire(self, now: float) -> None:
        """Drop entries that nobody refreshed."""
        for displayer, served in list(self._served.items()):
            if now - served.refreshed_s > self._lifetime_s:
                del self._served[displayer]

    def contents(self) -> tuple[tuple[Entry, ...], tuple[Kept, ...]]:
        """Everything, to be handed over."""
        entries = tuple(
            Entry(displayer, served.wanted, served.since_s, served.refreshed_s, frozenset(served.seen))
            for displayer, served in self._served.items()
        )
        return entries, tuple(self._events.values())

    def take_over(self, entries: Iterable[Entry], events: Iterable[Kept]) -> tuple[list[Kept], list[int]]:
        """Join what another broker kept; says what is new, and which displayers may now be owed something."""
        for entry in entries:
            served = self._served.get(entry.displayer)
            if served is None or served.since_s < entry.since_s:
                self._enter(entry)
            elif served.since_s == entry.since_s:  # else what we know is newer
                served.refreshed_s = max(served.refreshed_s, entry.refreshed_s)
                self._saw(served, entry.seen)
        new = self.store(events)
        return new, [displayer for displayer, served in self._served.items() if served.owed]

    def _enter(self, entry: Entry) -> None:
        served = self._served[entry.displayer] = _Served(entry)
        for kept in self._events.values():
            self._owe(served, kept)
        if len(self._served) > DISPLAYERS_MAX:
            del self._served[min(self._served, key=lambda each: self._served[each].refreshed_s)]

    def _owe(self, served: _Served, kept: Kept) -> None:
        if kept.id in served.seen or kept.published_s < served.since_s:
            return
        if served.wanted.matches(kept.event):
            served.owed[kept.id] = kept

    def _saw(self, served: _Served, ids: Iterable[EventId]) -> None:
        for event in ids:
            served.seen.add(event)
            served.owed.pop(event, None)
            served.sent_s.pop(event, None)
