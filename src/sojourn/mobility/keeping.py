"""The shelf: what a broker holds for subscribers, with the timers and the router's entries that go with it.

`main` has the latest holding of each subscriber. An earlier stay that the subscriber's next broker has not
asked for yet stands in `older`, still storing; so does one that is LEAVING. Each holding whose subscriptions
are in the router has a key there, the client's number where it is free.

Every holding that is not PRESENT has a timer, unless the scheme says that its time never runs out, and so has
a PRESENT one that waits for its old broker. That is what lets no wait last and no state stay for ever,
whatever other brokers forget. What follows when a timer runs out is in `visits.py`.
"""

from collections.abc import Iterator
from math import isfinite

from sojourn.mobility.copies import Feed, State, Turn, Wait, follow
from sojourn.mobility.holdings import NOT_SERVED, Holding
from sojourn.mobility.queues import Queues
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import CancelTimer, SetTimer
from sojourn.routing.messages import undoing
from sojourn.routing.router import Router

COPY_TIMEOUTS = 2
"""An active copy outlives Timeout(S) of the broker in control by this factor, then it is an orphan."""
DOUBTED_S = 1.0
"""How long an active copy that is in doubt goes on, unless it is activated anew: many may end at once, and a
driver lets timers run out in parts."""


class Shelf:
    """All holdings of one broker."""

    __slots__ = (
        "_effects",
        "_queues",
        "_router",
        "_scheme",
        "_spare_key",
        "_token",
        "fed",
        "main",
        "older",
        "present",
        "timers",
        "watched",
    )

    def __init__(self, router: Router, scheme: Scheme, queues: Queues) -> None:
        self._router = router
        self._effects = router.effects
        self._scheme = scheme
        self._queues = queues
        self.main: dict[int, Holding] = {}
        self.older: dict[int, list[Holding]] = {}
        self.fed: dict[int, Holding] = {}
        """By key in the router."""
        self.timers: dict[int, Holding] = {}
        """By token."""
        self.present = 0
        """How many subscribers are connected here."""
        self.watched = 0
        """How many holdings in the router are not open: their events have to be looked at one by one."""
        self._token = 0
        self._spare_key = 0

    # Which holdings there are ------------------------------------------------------------------------

    def all(self, client: int) -> Iterator[Holding]:
        """Everything that is held for a client, the latest first."""
        main = self.main.get(client)
        if main is not None:
            yield main
        yield from tuple(self.older.get(client, ()))

    def stay_of(self, client: int, epoch: int) -> Holding | None:
        """The stay that a connection began or resumed."""
        for holding in self.all(client):
            if holding.is_stay() and holding.epoch == epoch:
                return holding
        return None

    def holds(self, client: int) -> bool:
        """Whether there is anything of a client."""
        return client in self.main or client in self.older

    def place(self, holding: Holding) -> Holding:
        """Put a new holding where the client has none that counts."""
        assert holding.client not in self.main, "a client has one holding that counts"
        self.main[holding.client] = holding
        return holding

    def set_aside(self, holding: Holding) -> None:
        """The subscriber has a later holding here; this one still waits to be asked, or to give."""
        if self.main.get(holding.client) is holding:
            del self.main[holding.client]
            self.older.setdefault(holding.client, []).append(holding)
        if holding.state is State.PRESENT:
            self.stop_serving(holding, holding.cause)

    def forget_marks(self, before: int) -> None:
        """Forget of all that is held how far sources had come whose numbers ended long ago."""
        for client in (*self.main, *self.older):
            for holding in self.all(client):
                holding.forget_marks(before)

    # Turns -------------------------------------------------------------------------------------------

    def turn(self, holding: Holding, turn: Turn, cause: int) -> None:
        """Let something happen to a holding: its state, its timer and its subscriptions follow."""
        following = follow(holding.state, turn)
        self.present += (following.state is State.PRESENT) - (holding.state is State.PRESENT)
        holding.state = following.state
        holding.lingers = False
        if following.wait is not Wait.AS_IS:
            self.rewind(holding, following.wait)
        if following.feed is Feed.START:
            self.hold(holding, holding.subscriptions, cause)
        elif following.feed is Feed.STOP:
            self.hold(holding, (), undoing(cause))
        if following.state is State.ABSENT:
            self._forget(holding)

    def arrive(self, stay: Holding, cause: int) -> None:
        """The subscriber is connected here; it is not served yet."""
        self._stop_giving(stay)
        stay.heard = False
        self.set_open(stay, is_open=False)
        self.turn(stay, Turn.ARRIVED, cause)

    def stop_serving(self, stay: Holding, cause: int) -> None:
        """Its connection is gone: store from now on."""
        self._stop_giving(stay)
        self.set_open(stay, is_open=False)
        self.turn(stay, Turn.LOST, cause)

    def _stop_giving(self, stay: Holding) -> None:
        stay.ready = False
        stay.served = NOT_SERVED
        stay.gives.clear()

    def _forget(self, holding: Holding) -> None:
        self._queues.empty(holding)
        self._queues.accounts.leave(holding)
        if self.main.get(holding.client) is holding:
            del self.main[holding.client]
            return
        older = self.older.get(holding.client)
        if older is not None and holding in older:
            older.remove(holding)
            if not older:
                del self.older[holding.client]

    # Timers ------------------------------------------------------------------------------------------

    def rewind(self, holding: Holding, wait: Wait) -> None:
        """Stop the holding's timer and start the next one, if the state has one."""
        if holding.token:
            self.timers.pop(holding.token, None)
            self._effects.cancels.append(CancelTimer(holding.client, holding.token))
            holding.token = 0
        if wait is Wait.STOP or (wait is Wait.PATIENCE and not holding.waits):
            return
        self._set_timer(holding, self._delay_s(holding.state, wait))

    def _set_timer(self, holding: Holding, delay_s: float) -> None:
        if isfinite(delay_s):
            self._token -= 1  # the tokens of publishers' stays are positive
            holding.token = self._token
            self.timers[self._token] = holding
            self._effects.timers.append(SetTimer(holding.client, self._token, delay_s))

    def linger(self, stay: Holding, grace_s: float) -> None:
        """The subscriber has left; see after a while whether it is still away."""
        stay.lingers = True
        self.rewind(stay, Wait.STOP)
        self._set_timer(stay, grace_s)

    def doubt(self, copy: Holding) -> None:
        """Let an active copy serve nobody, and end soon, unless it is activated anew."""
        copy.waits.clear()
        copy.complete = False
        self.rewind(copy, Wait.STOP)
        self._set_timer(copy, DOUBTED_S)

    def _delay_s(self, state: State, wait: Wait) -> float:
        scheme = self._scheme
        if state is State.ACTIVE:
            return COPY_TIMEOUTS * scheme.timeout_s
        if state is State.PASSIVE:
            return scheme.passive_s
        if wait is Wait.PATIENCE:
            return scheme.patience_s
        if state is State.LEAVING:
            # Subscribers may be away for long, but nobody waits for so long for what this stay owes.
            return min(scheme.timeout_s, scheme.patience_s)
        return scheme.timeout_s

    def fired(self, token: int) -> Holding | None:
        """The holding whose timer ran out; a timer whose cancellation was under way is of none."""
        holding = self.timers.pop(token, None)
        if holding is not None:
            holding.token = 0
        return holding

    # The router --------------------------------------------------------------------------------------

    def hold(self, holding: Holding, subscriptions: tuple[int, ...], cause: int) -> None:
        """Have exactly these subscriptions in the router: first what is new, then less what is not."""
        held = holding.fed
        if held == subscriptions:
            return
        if not held:
            self._enter(holding)
        old, new = set(held), set(subscriptions)
        for sub in subscriptions:
            if sub not in old:
                self._router.client_subscribes(holding.key, sub, cause)
        for sub in held:
            if sub not in new:
                self._router.client_unsubscribes(holding.key, sub, undoing(cause))
        holding.fed = subscriptions
        if not subscriptions:
            del self.fed[holding.key]
            self.watched -= not holding.is_open
            holding.is_open = False

    def _enter(self, holding: Holding) -> None:
        holding.key = holding.client
        if holding.key in self.fed:
            self._spare_key -= 1
            holding.key = self._spare_key
        self.fed[holding.key] = holding
        holding.is_open = False
        self.watched += 1

    def set_open(self, holding: Holding, *, is_open: bool) -> None:
        """Have a holding's events looked at, or delivered as the router says; only under its client's key."""
        is_open = is_open and holding.key == holding.client
        if holding.fed and holding.is_open != is_open:
            holding.is_open = is_open
            self.watched += -1 if is_open else 1
