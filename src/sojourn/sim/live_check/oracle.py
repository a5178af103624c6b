"""An oracle that knows no broker: what clients were told, and whether that was kept.

Each client has a `Diary`. It notes what the client published and was told is safe, what it subscribed to and
was granted, what arrived. The rules, all in terms of what clients saw and of the world's own `Log` of faults:

- A session that is there stays there: until it is given up, its time runs out, or a broker that may have had
  it forgot it.
- An event that was acknowledged is *promised* to each session that had been granted a fitting subscription of
  QoS 1 or 2 before it was sent, and has wanted it ever since. It arrives.
- An event that arrives was published and wanted, at no more than its QoS. It arrives once; at QoS 1 again
  only as a marked repetition, or where its publisher had to repeat it and did not number it.
- First arrivals of events that were sent once, on one connection, come in the order in which they were sent.

What is promised to members of groups is in `groups.py`.

What a granted subscription promises holds for brokers that were in reach of its own at that time, and for the
others from when the links between were whole again. `excused` counts what was lost because a broker lost its
memory: an event that was not consumed before the lost part began, and that may have been at that broker. An
event that arrives twice is excused only by a broker that had the session, or took the event in, and forgot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sojourn.errors import SojournError
from sojourn.sim.live_check.events import Event, Wish
from sojourn.sim.live_check.groups import Groups, Memberships
from sojourn.sim.live_check.log import Forgotten

if TYPE_CHECKING:
    from sojourn.sim.live_check.script import Persona
    from sojourn.sim.live_check.world import World

EXPIRY_MARGIN_S = 2.0
"""A session may end so much before its time by a broker's own clock."""
STORED_MARGIN_S = 5.0


class FailedCheckError(SojournError):
    """A promise was broken; `kind` says in a word which."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Granted:
    """One subscription of a session."""

    __slots__ = ("asked_s", "broker", "ended_s", "granted_s", "wish")

    def __init__(self, wish: Wish, broker: int, asked_s: float) -> None:
        self.wish, self.broker, self.asked_s = wish, broker, asked_s
        self.granted_s: float | None = None
        self.ended_s: float | None = None
        """When the client said that it wants this no longer."""


class Session:
    """One session of a client, as long as the client has reason to believe in it."""

    def __init__(self, began_s: float, *, is_doubtful: bool = False) -> None:
        self.began_s = began_s
        self.is_doubtful = is_doubtful
        """Whether it may be an older one, with subscriptions that are not noted here."""
        self.subscriptions: list[Granted] = []
        self.got: dict[str, float] = {}
        """By event: when it first arrived."""
        self.greetings: set[str] = set()
        """The events that it was sent as retained."""
        self.last: dict[tuple[str, int, bool], int] = {}
        """By publisher, its connection and whether it is sure: the last place in order that arrived."""
        self.stated: set[str] = set()
        """The events that its client said it has, by marks in its CONNECTs: nobody sends it these again,
        though they came to a session that is gone."""
        self.visits: list[tuple[float, int]] = []
        """When its client tried to connect or was welcomed, and where."""
        self.holders: list[tuple[float, frozenset[int]]] = []
        """Since when which brokers may have it: where the client was last welcomed or tried since, and all
        between."""

    def visit(self, now: float, broker: int, between: Callable[[int, int], set[int]] | None) -> None:
        """Note that the client tried to connect to a broker; or was welcomed, with nothing `between`."""
        self.visits.append((now, broker))
        here = frozenset({broker})
        if between is not None and self.holders:
            # It may be on its way, from wherever it was to wherever its client asked for it.
            here = here.union(*(between(one, broker) for one in self.holders[-1][1]))
        self.holders.append((now, here))

    def was_at(self, broker: int, since_s: float, until_s: float) -> bool:
        """Whether it may have been at a broker at some time between."""
        last = next(
            (brokers for at_s, brokers in reversed(self.holders) if at_s <= since_s), frozenset[int]()
        )
        return broker in last or any(
            broker in brokers for at_s, brokers in self.holders if since_s < at_s <= until_s
        )

    def current(self, wish: Wish) -> Granted | None:
        """Return the subscription of a wish that is in force or asked for."""
        return next((one for one in self.subscriptions if one.wish == wish and one.ended_s is None), None)


class Oracle:
    """What all clients know together."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: dict[str, Event] = {}
        self.diaries: list[Diary] = []
        self.excused: Counter[str] = Counter()
        self.deliveries = 0
        self.promises = 0
        self.groups = Groups()

    def judge(self) -> None:
        """Look for every event that was promised to a session that is still there."""
        for diary in self.diaries:
            diary.judge()
        for diary in self.diaries:
            diary.groups.judge()

    def forgetting(self, brokers: set[int], undone_s: float, until_s: float) -> Forgotten | None:
        """Return why something may be lost that was at one of these brokers in a time."""
        for one in self.world.log.forgotten:
            if one.broker in brokers and one.since_s <= until_s and undone_s <= self.world.log.settled_s(one):
                return one
        return None


class Diary:
    """What one client knows."""

    def __init__(self, oracle: Oracle, persona: Persona) -> None:
        self._oracle, self._persona = oracle, persona
        self.session: Session | None = None
        self._left_s: float | None = None
        """When its last connection was gone; None while there is one."""
        self._asked_s = 0.0
        """When it last sent a CONNECT. A session may be as old as that: its broker may welcome the client and
        lose its memory before the client hears of the welcome."""
        self._stated: frozenset[str] = frozenset()
        """What it said it has in its last CONNECT."""
        self._wiped = False
        """Whether it gave its session up in a CONNECT since the last welcome."""
        self._cleaned_s: float | None = None
        """When it began anew, until all brokers must have heard of that."""
        self.retained: dict[str, str] = {}
        """By topic: the last event that it was sent as retained."""
        self.groups = Memberships(oracle, self)
        self.leavings: list[float] = []
        """When a connection was gone."""
        oracle.diaries.append(self)

    @property
    def now(self) -> float:
        """Return the time."""
        return self._oracle.world.now

    @property
    def name(self) -> str:
        """Return the client's name."""
        return self._persona.name

    @property
    def may_have_ended(self) -> bool:
        """Whether the client's last session may be over, although it has not heard of that."""
        return self.session is None or self._why_lost() is not None

    def was_deaf(self, since_s: float, until_s: float) -> bool:
        """Whether what the client said may not have been taken in at some time between."""
        return self._oracle.world.log.was_deaf(since_s, until_s)

    def fail(self, kind: str, text: str) -> None:
        """Stop the world: a promise to this client was broken."""
        raise FailedCheckError(kind, f"{self.now:.3f} s: {self._persona.name} {text}")

    # Sessions ------------------------------------------------------------------------------------------

    def connects(self, broker: int, *, clean: bool, stated: frozenset[str]) -> None:
        """Note a CONNECT, and the events that the client states to have in it."""
        self._asked_s, self._stated = self.now, stated
        if self.session is not None:
            self.session.stated |= stated
            self.session.visit(self.now, broker, self._oracle.world.log.brokers_between)
        self._wiped = self._wiped or clean

    def left(self) -> None:
        """Note that the connection is gone."""
        self.leavings.append(self.now)
        if self._left_s is None:
            self._left_s = self.now

    def begins(self, broker: int, *, present: bool) -> bool:
        """Note a welcome, and judge whether it is the right one; return whether the session is in doubt."""
        before, why = self.session, self._why_lost()
        if self._wiped:
            self._cleaned_s = self.now
        if present and before is not None and why == "ended with its connection":
            self.fail("session", f"found a session at {broker} that had ended with its connection")
        if not present and before is not None and why is None:
            self.fail(
                "session", f"was given a new session at {broker}, having had one since {before.began_s:.3f} s"
            )
        is_doubtful = present and before is not None and why is not None
        if not present or before is None or is_doubtful:
            self.session = Session(self._asked_s, is_doubtful=is_doubtful)
            self.session.stated |= self._stated
            if before is not None and is_doubtful:  # this may be that one all the same
                self.session.stated |= before.stated
                self.session.greetings |= before.greetings | before.got.keys()
            self.session.visit(self._asked_s, broker, None)
            if before is not None and why is not None:
                self._oracle.excused[f"session: {why}"] += 1
        assert self.session is not None
        self.session.visit(self.now, broker, None)
        self._left_s = None
        self._wiped = False
        return is_doubtful

    def _why_lost(self) -> str | None:
        """Return why the last session may be gone by right, or None."""
        if self.session is None:
            return "never was"
        if self._wiped:
            return "given up"
        if self._persona.expiry_s == 0:
            return "ended with its connection"
        if self._is_cleaning():
            return "given up at a broker out of reach"
        world = self._oracle.world
        if self._left_s is not None:
            away_s = self.now - self._left_s + world.log.ahead_s(self._left_s, self.now)
            longest_s = world.processes[0].settings.session_expiry_max_s  # as each CONNACK says
            assert longest_s is not None, "what is stored follows clients here"
            if away_s >= min(self._persona.expiry_s, longest_s) - EXPIRY_MARGIN_S:
                return "expired"
        return "forgotten" if self._is_forgotten(self.session) else None

    def _is_forgotten(self, session: Session) -> bool:
        """Whether a broker lost its memory while it had the session, or of what it did with it."""
        for one in self._oracle.world.log.forgotten:
            if session.began_s <= one.died_s and session.was_at(one.broker, one.held_s, one.died_s):
                return True
        return False

    def _is_cleaning(self) -> bool:
        """Whether the client began anew and some broker may have an older session all the same.

        It may not have heard of that yet, or its clock says that its own session is the later one.
        """
        if self._cleaned_s is None:
            return False
        world = self._oracle.world
        offsets = [process.offset_s for process in world.processes]
        agreed_s = self._cleaned_s + max(offsets) - min(offsets)
        if world.log.is_over(self._cleaned_s) and (max(offsets) == min(offsets) or world.now > agreed_s):
            self._cleaned_s = None
            return False
        return True

    def ends(self) -> None:
        """Note that the client gave its session up and need not come back."""
        self.session = None

    # Subscriptions -------------------------------------------------------------------------------------

    def asks(self, wish: Wish, broker: int) -> None:
        """Note a SUBSCRIBE."""
        assert self.session is not None
        if self.session.current(wish) is None:
            self.session.subscriptions.append(Granted(wish, broker, self.now))

    def granted(self, wish: Wish) -> None:
        """Note a SUBACK."""
        assert self.session is not None
        one = self.session.current(wish)
        if one is not None and one.granted_s is None:
            one.granted_s = self.now

    def wants_no_more(self, pattern: str) -> None:
        """Note that all subscriptions of a pattern are unwanted from now on."""
        if self.session is not None:
            for one in self.session.subscriptions:
                if one.wish.pattern == pattern and one.ended_s is None:
                    one.ended_s = self.now

    # Events --------------------------------------------------------------------------------------------

    def makes(self, event: Event) -> None:
        """Note an event that is published or waits to be."""
        self._oracle.events[event.name] = event

    def makes_will(self, connection: int, delay_s: int, *, retain: bool) -> Event:
        """Note the will of a connection."""
        number = int(self._persona.name[1:])
        event = Event(f"will-{self._persona.name}", connection, f"w/{number}", delay_s % 10, 1, retain=retain)
        event.made_s = self.now
        event.is_anew = False
        self._oracle.events[event.name] = event
        return event

    def arrived(self, name: str, topic: str, qos: int, *, is_again: bool, is_retained: bool) -> None:
        """Note an event that arrived, and judge it."""
        event = self._oracle.events.get(name)
        if event is None or event.topic != topic:
            self.fail("unknown", f"was sent {name!r} on {topic}, which nobody published")
            return
        session = self.session
        assert session is not None, "only who was welcomed is sent anything"
        self._oracle.deliveries += 1
        own = [one.wish for one in session.subscriptions if not one.wish.is_shared]
        fitting = [wish.qos for wish in own if wish.fits(event)]
        if session.is_doubtful:
            fitting.append(event.qos)
        if not fitting:
            self.fail("unasked", f"was sent {name}, which it never asked for")
        if qos > min(event.qos, max(fitting)):
            self.fail("qos", f"was sent {name} at QoS {qos}")
        if is_retained:
            if not event.retain:
                self.fail("retained", f"was sent {name} as retained, which it was not")
            self.retained[topic] = name
            session.greetings.add(name)
            return
        if name in session.got:
            self._judge_repetition(session, event, qos, is_again=is_again)
            return
        session.got[name] = self.now
        self._judge_order(session, event, qos)

    def arrived_of_strangers(self) -> None:
        """Note an event without an identity: nobody honest publishes such a one."""
        world = self._oracle.world
        if not world.strangers:
            self.fail("unknown", "was sent an event without an identity, which nobody published")
        world.counts["events of strangers"] += 1

    def _judge_repetition(self, session: Session, event: Event, qos: int, *, is_again: bool) -> None:
        if event.may_repeat or (qos == 1 and is_again):
            return
        since_s = session.got[event.name]
        # Who forgot that it had published a will publishes another, however late a client hears of the first.
        undone_s = since_s if event.made_s is None else event.made_s
        if self._has_forgotten_having(session, event, undone_s):
            self._oracle.excused["repetition"] += 1
            return
        self.fail("repeated", f"was sent {event.name} again at QoS {qos}, first at {since_s:.3f} s, unmarked")

    def _has_forgotten_having(self, session: Session, event: Event, since_s: float) -> bool:
        """Whether a broker that had the session, or took the event from its publisher, forgot that.

        Brokers between those two are no excuse: what one of them passes on again the next one knows. A will
        may be published by any broker.
        """
        world = self._oracle.world
        log = world.log
        sources = {send.broker for send in event.sends if len(event.sends) > 1}
        if not event.sends:
            sources = set(range(world.script.brokers))
        return any(
            one.broker in sources or session.was_at(one.broker, one.held_s, self.now)
            for one in log.forgotten
            if one.since_s <= self.now and since_s <= log.settled_s(one)
        )

    def _judge_order(self, session: Session, event: Event, qos: int) -> None:
        if len(event.sends) != 1:
            return
        key = event.publisher, event.sends[0].connection, qos > 0
        last = session.last.get(key, 0)
        if event.order > last:
            session.last[key] = event.order
            return
        brokers = self._brokers_of(session, event)
        if self._oracle.forgetting(brokers, event.sends[0].at_s, self.now) is not None:
            self._oracle.excused["order"] += 1
            return
        self.fail("order", f"was sent {event.name} after {event.publisher}.{last}")

    def _brokers_of(self, session: Session, event: Event) -> set[int]:
        """Return the brokers that an event may have been at on its way to a session."""
        log = self._oracle.world.log
        if not event.sends:  # a will comes from wherever its client's session was
            return set(range(self._oracle.world.script.brokers))
        began = event.sends[0].at_s
        before = [broker for at_s, broker in session.visits if at_s <= began][-1:]
        visited = {*before, *(broker for at_s, broker in session.visits if at_s > began)}
        sources = {send.broker for send in event.sends}
        places = visited | sources
        return set().union(*(log.brokers_between(one, other) for one in places for other in places))

    def judge(self) -> None:
        """Look for every event that was promised to the session."""
        session = self.session
        if session is None:
            return
        for event in self._oracle.events.values():
            if event.acked_s is None or not event.qos or event.is_doubtful:
                continue
            own = (one for one in session.subscriptions if not one.wish.is_shared)
            if not any(self.is_promised(one, event) for one in own):
                continue
            self._oracle.promises += 1
            if event.name in session.got:
                continue
            brokers = self._brokers_of(session, event)
            if self._oracle.forgetting(brokers, event.sends[0].at_s, self.now) is not None:
                self._oracle.excused["event"] += 1
                continue
            first = event.sends[0]
            self.fail(
                "lost",
                f"never got {event.name} ({event.topic}, {event.value}, QoS {event.qos}), sent at "
                f"{first.at_s:.3f} s to {first.broker} and acknowledged at {event.acked_s:.3f} s",
            )

    def judge_retained(self, values: Mapping[str, str]) -> None:
        """See that the client knows the retained event of every topic that it wants to know of."""
        session = self.session
        if session is None:
            return
        for event in (self._oracle.events[name] for name in values.values()):
            if event.acked_s is None or not event.qos or event.is_doubtful or not event.sends:
                continue
            own = [one for one in session.subscriptions if not one.wish.is_shared]
            if not any(self._is_to_know(one, event) for one in own):
                continue
            self._oracle.promises += 1
            if event.name in session.got or event.name in session.greetings or event.name in session.stated:
                continue
            brokers = self._brokers_of(session, event)
            if self._oracle.forgetting(brokers, event.sends[0].at_s, self.now) is not None:
                self._oracle.excused["retained event"] += 1
                continue
            text = f"does not know {event.name}, which is retained on {event.topic}"
            self.fail("stale", f"{text}, sent at {event.sends[0].at_s:.3f} s to {event.sends[0].broker}")

    def _is_to_know(self, one: Granted, event: Event) -> bool:
        """Whether a subscription is for a retained event, which came before it or after."""
        is_in_force = one.granted_s is not None and one.ended_s is None
        return is_in_force and bool(one.wish.qos) and not one.wish.retain_handling and one.wish.fits(event)

    def is_promised(self, one: Granted, event: Event) -> bool:
        """Whether a subscription was in force for an event before it was sent, wherever that was."""
        if one.granted_s is None or one.ended_s is not None or not one.wish.qos or not one.wish.fits(event):
            return False
        log = self._oracle.world.log
        for send in event.sends:
            if send.at_s < one.granted_s:  # at the same moment: by somebody who was told of the SUBACK
                return False
            if log.was_whole(one.broker, send.broker, one.asked_s, one.granted_s):
                continue
            if send.at_s <= log.whole_from(log.path(one.broker, send.broker), one.granted_s):
                return False
        return True
