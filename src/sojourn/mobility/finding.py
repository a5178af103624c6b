"""Finding the session of a client that connects to a broker which does not have it.

What is stored for a subscriber follows it by the schemes of `schemes.py`. The rest of its session (what it
subscribed to and how, what it has half received) is kept by one broker at a time, and a client need not know
which. So the broker it connects to asks: first the one that is likely to have it, which the client names as
its last or which had a copy here store for it, then all of them. Who is asked first is a guess: one that has
nothing says so, as to any question, and whatever it says is weighed by the rules below.

    epoch = finder.next_epoch(client, now, after)
    finder.seek(client, epoch, previous, now)           # asks; `finder.results` says what came of it
    finder.asked(message, held_epoch, now, present=…)   # somebody else asks
    finder.answered(message, now)                       # an answer came
    finder.out_of_reach = {broker: since_s}; finder.time_passed(now)

A connection is a *pair*, its epoch and its broker's number, and pairs are ordered. The rules:

- Whoever has the session gives it to an asker with a later epoch, and to no other: the rest of the mobility
  core orders stays by epochs alone. An asker with the same epoch and a higher number takes a later epoch. So
  of several connections at once the latest gets the session.
- An asker with an earlier pair is told the later one. The broker of the later connection alone knows whether
  the client is still there: if so, the asker is superseded; if not, it takes an epoch that is later still and
  asks again, for it has a live connection and is right. Who hears of a later connection from a third broker
  asks the broker of that connection.
- A broker that asked and has not been answered by all may yet be sent the session: it has *debts*
  outstanding. It does not say that it has none before they are settled. A later asker becomes its *heir*, who
  gets what comes, or the news that nothing came. While all debtors are out of reach the heir is told whom it
  waits for.
- So a client starts anew only if every broker said that it has nothing and expects nothing. If some are out
  of reach, or silent for too long, the search ends as `unreachable` and the client is to try again; only when
  all of them have been out of reach for `give_up_s` is it given a new session.
- The questions stay with the links. What is given later comes here, though nobody waits: it goes on to the
  heir, or is kept here for the client (a late result).
- A session that comes for an epoch that already had one (`settled`) is a repetition, or was given up before.
- After a clean start, or when a session was given up, there may be two. Whoever has one and hears of the
  other meets it: the later pair stays.

Why nobody is overlooked: suppose all brokers said no to an asker while the session travelled. Then some
broker G gave it away before it was asked, to a broker T that got it after it was asked. T had no debts then,
so it asked for the session only after it knew the asker, with a later pair; and G, which knew that pair when
it was asked, has told of it. This rests on the order of messages between two brokers and on the memory of who
asked, which is limited (`TRAILS_MAX`, `forget_until`) and lost with a broker's store.

This is a core: no clock, no sockets, plain state. Messages go hop by hop like all that have a destination.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping

from sojourn.mobility.epochs import EPOCH_END, EpochClock
from sojourn.mobility.finding_letters import Letters
from sojourn.mobility.finding_messages import EVERYBODY, FIND, FOUND, Discard, Find, Found, Give, Result
from sojourn.mobility.trails import Heir, Pair, Search, Trail

__all__ = ["EVERYBODY", "FIND", "FOUND", "Find", "Finder", "Found", "Give", "Result"]

TRAILS_MAX = 10_000
"""Clients that something is remembered of, besides those that are being looked for."""
OVERTAKES_MAX = 4
"""How often a search may take a later epoch; who is overtaken more often than that is superseded."""


class Finder:
    """The searches of one broker."""

    def __init__(
        self,
        number: int,
        brokers: int,
        *,
        patience_s: float = 5.0,
        named_patience_s: float = 1.0,
        give_up_s: float = 600.0,
    ) -> None:
        self.number = number
        self._others = frozenset(range(brokers)) - {number}
        self._patience_s, self._named_patience_s = patience_s, named_patience_s
        """For the answers of all brokers; for that of the one which the client says it comes from."""
        self._give_up_s = give_up_s
        """How long brokers must have been out of reach before a session is given up that may be with them."""
        self.out_of_reach: Mapping[int, float] = {}
        """By broker that is out of reach: since when. The driver replaces it, and calls `time_passed`."""
        self.clock = EpochClock(number, brokers)
        self._searches: dict[int, Search] = {}
        self._trails: OrderedDict[int, Trail] = OrderedDict()
        """By client, the one longest not spoken of first."""
        self._heirs: dict[int, Heir] = {}
        """By client with debts: who gets what comes."""
        self._letters = Letters(number)
        self.results: list[Result] = []
        self.gives: list[Give] = []
        self.discards: list[Discard] = []
        """Sessions that came for clients which have later ones."""

    @property
    def sends(self) -> list[Find | Found]:
        """Messages to be sent towards their destination, or to every neighbour; who sends them clears it."""
        return self._letters.sends

    # A client comes --------------------------------------------------------------------------------------

    def next_epoch(self, client: int, now: float, after: int = 0) -> int:
        """Return the epoch of a new connection here, later than all that is known of the client."""
        trail = self._trails.get(client)
        return self.clock.next(now, max(after, trail.latest[0] if trail is not None else 0))

    def seek(self, client: int, epoch: int, previous: int | None, now: float) -> None:
        """Look for a client's session: at the broker it names, and everywhere."""
        trail = self._begin(client, epoch, now)
        search = self._searches[client] = Search(epoch)
        search.deadline_s = now + self._patience_s
        if previous in self._others and previous not in self.out_of_reach:
            search.named = previous
            search.silent = {previous}
            search.deadline_s = now + self._named_patience_s
            self._ask(client, trail, search, previous, now)
        else:
            self._ask_all(client, trail, search, now)
        self._review(client, trail, now)

    def begin_anew(self, client: int, epoch: int, now: float) -> None:
        """The client asked for a new session here, whatever there is elsewhere (clean start)."""
        self.claim(client, epoch, now)
        self._trails[client].anew = epoch

    def claim(self, client: int, epoch: int, now: float) -> None:
        """The client has its session here, whatever there is elsewhere: that is to end."""
        trail = self._begin(client, epoch, now)
        trail.settle(epoch)
        trail.claimed = epoch
        if self._others:
            self._letters.find(client, EVERYBODY, epoch)

    def latest(self, client: int) -> Pair:
        """The latest connection of a client that was heard of: what came here has gone there."""
        trail = self._trails.get(client)
        return trail.latest if trail is not None else (0, self.number)

    def outdo(self, client: int, ended: int, now: float) -> int:
        """Return a later epoch for a session that just began anew here than one that is known to be over."""
        epoch, trail = self.next_epoch(client, now, ended), self._trail(client, now)
        trail.learn((epoch, self.number))
        if trail.given_up == trail.settled:
            trail.given_up = epoch
        trail.settle(epoch)
        return epoch

    def abandon(self, client: int) -> None:
        """Look for a client no longer: it was sent away. What was asked is answered all the same."""
        self._searches.pop(client, None)

    def _begin(self, client: int, epoch: int, now: float) -> Trail:
        """Note a new connection here."""
        trail = self._trail(client, now)
        running = self._searches.get(client)
        if running is not None:
            self._supersede(client, running)
        trail.learn((epoch, self.number))
        heir = self._heirs.pop(client, None)
        if heir is not None:
            self._letters.answer(client, trail, heir.pair, present=True)
        return trail

    def seeks(self, client: int) -> bool:
        """Whether a search for a client is under way."""
        return client in self._searches

    def clients(self) -> set[int]:
        """The clients that something is remembered of."""
        return {*self._searches, *self._trails}

    def forget_until(self, moment_s: float) -> None:
        """Forget clients that nobody has spoken of since; later, if somebody still owes an answer."""
        for client, trail in list(self._trails.items()):
            spoken_s = trail.touched_s + (self._give_up_s if trail.debts else 0.0)
            if spoken_s < moment_s and client not in self._searches:
                self._forget(client)

    def _trail(self, client: int, now: float) -> Trail:
        trail = self._trails.get(client)
        if trail is None:
            trail = self._trails[client] = Trail()
            if len(self._trails) > TRAILS_MAX + len(self._searches):
                self._forget_oldest()
        self._trails.move_to_end(client)
        trail.touched_s = now
        return trail

    def _forget_oldest(self) -> None:
        oldest = next(iter(self._trails))
        while oldest in self._searches:  # some other is not
            self._trails.move_to_end(oldest)
            oldest = next(iter(self._trails))
        self._forget(oldest)

    def _forget(self, client: int) -> None:
        del self._trails[client]
        self._heirs.pop(client, None)

    def regroup(self, brokers: int, left: Collection[int], now: float) -> None:
        """Go by so many brokers from now on, but for those that have left: nobody waits for these.

        Whoever has come meanwhile may have been given a session that is looked for here: it is asked too.
        """
        others = frozenset(range(brokers)) - {self.number} - frozenset(left)
        came, self._others = others - self._others, others
        self.clock.grow(brokers)
        for trail in self._trails.values():
            trail.leave_out(left, self.number)
        for client in [client for client, heir in self._heirs.items() if heir.pair[1] in left]:
            del self._heirs[client]
        for search in self._searches.values():
            search.leave_out(left)
            if search.named is None:
                search.silent |= came
        self.time_passed(now)

    @property
    def expects(self) -> int:
        """For how many clients something is being looked for, or may still come."""
        return len(self._searches) + sum(
            bool(trail.debts) for client, trail in self._trails.items() if client not in self._searches
        )

    # Questions -------------------------------------------------------------------------------------------

    def _ask_all(self, client: int, trail: Trail, search: Search, now: float) -> None:
        """Ask every broker under the epoch that the search has now."""
        if search.named is not None:
            search.named = None
            search.deadline_s = now + self._patience_s
        search.silent = set(self._others)
        search.asked.clear()
        search.confronted.clear()
        if any(broker in self.out_of_reach for broker in trail.debts):
            for broker in sorted(search.silent):
                self._ask(client, trail, search, broker, now)
        elif self._others:
            self._letters.find(client, EVERYBODY, search.epoch)
            for broker in self._others:
                search.asked.add(broker)
                trail.ask(broker, search.epoch, now)

    def _ask(self, client: int, trail: Trail, search: Search, broker: int, now: float) -> None:
        """Ask one broker; but one out of reach only once, so that a client that tries again fills no link."""
        if broker not in self.out_of_reach or broker not in trail.debts:
            self._letters.find(client, broker, search.epoch)
            search.asked.add(broker)
            trail.ask(broker, search.epoch, now)

    def _overtake(self, client: int, trail: Trail, search: Search, now: float) -> None:
        """A later connection is not there any more: ask under an epoch that is later still."""
        search.overtakes += 1
        if search.overtakes > OVERTAKES_MAX or trail.latest[0] + 1 >= EPOCH_END:
            self._supersede(client, search)
            return
        search.epoch = self.next_epoch(client, now)
        trail.learn((search.epoch, self.number))
        search.rumours.clear()
        self._ask_all(client, trail, search, now)

    def asked(self, message: Find, held_epoch: int | None, now: float, *, present: bool) -> None:
        """Somebody asks for a client; `held_epoch` is that of its session here, None if there is none.

        `present` says whether the client is connected here.
        """
        client, pair = message.client, (message.epoch, message.sender)
        if message.sender not in self._others or message.epoch >= EPOCH_END:
            return
        self.clock.witness(message.epoch, now)
        trail = self._trail(client, now)
        search = self._searches.get(client)
        if held_epoch is not None:
            own = (max(held_epoch, trail.settled), self.number)
            trail.learn(pair)
            if own[0] < message.epoch:
                self.gives.append(Give(client, message.epoch, message.sender))
            else:
                self._letters.tell(client, pair, later=own, present=present, holds=True)
            return
        if trail.latest > pair:
            self._letters.answer(client, trail, pair, present=search is not None)
            return
        trail.learn(pair)
        if search is not None:
            self._supersede(client, search)
        heir = self._heirs.get(client)
        if heir is not None and heir.pair != pair:
            self._letters.answer(client, trail, heir.pair, present=False)
        self._heirs[client] = Heir(pair)
        self._remind(client, trail, now)
        self._review(client, trail, now)

    def _remind(self, client: int, trail: Trail, now: float) -> None:
        """Ask those again who should have answered: they may have lost their memory, with the question."""
        for broker, debt in trail.debts.items():
            if broker not in self.out_of_reach and now - debt.asked_s >= self._patience_s:
                trail.ask(broker, debt.epoch, now)
                self._letters.find(client, broker, debt.epoch)

    # Answers ---------------------------------------------------------------------------------------------

    def give(self, client: int, epoch: int, to: int, state: bytes | None) -> None:
        """Send a session to the broker that asked for it; None if it ended with its connection here."""
        self._letters.tell(client, (epoch, to), state=state)

    def answered(self, message: Found, held_epoch: int | None, now: float, *, present: bool) -> None:
        """An answer came, perhaps to a question that is no longer asked.

        `held_epoch` and `present` are as for `asked`.
        """
        if message.sender not in self._others or message.held_epoch >= EPOCH_END:
            return
        self.clock.witness(max(message.epoch, message.held_epoch), now)
        if message.state is not None:
            self._arrived(message, message.state, now)
            return
        client = message.client
        trail = self._trails.get(client)
        if trail is None:
            return
        trail.touched_s = now
        trail.take_answer(message)
        if message.held_epoch:
            own_epoch = None if held_epoch is None else max(held_epoch, trail.settled)
            self._hear_of_later(trail, message, own_epoch, now, present=present)
        search = self._searches.get(client)
        if search is not None:
            self._answer_search(client, trail, search, message, now)
        self._review(client, trail, now)

    def _hear_of_later(
        self, trail: Trail, message: Found, own_epoch: int | None, now: float, *, present: bool
    ) -> None:
        """The client has, or had, another connection elsewhere."""
        if own_epoch is None and message.holds and message.epoch <= trail.settled:
            self._pass_rival_on(trail, message)
        elif own_epoch is not None and message.epoch >= trail.claimed:
            self._meet_rival(message, own_epoch, now, present=present)
        trail.learn((message.held_epoch, message.held_at))

    def _answer_search(self, client: int, trail: Trail, search: Search, message: Found, now: float) -> None:
        if message.epoch == search.epoch and message.sender not in trail.excuses:
            search.silent.discard(message.sender)
        if (message.held_epoch, message.held_at) > (search.epoch, self.number):
            self._overtaken(client, trail, search, message, now)
        elif message.holds and message.held_epoch == search.epoch:
            self._overtake(client, trail, search, now)

    def _overtaken(self, client: int, trail: Trail, search: Search, message: Found, now: float) -> None:
        """There is a later connection of the client; or there was."""
        at = message.held_at
        if at == message.sender and message.present:
            self._supersede(client, search)
        elif at in (message.sender, self.number):
            self._overtake(client, trail, search, now)
        elif at in self._others:
            search.rumours[at] = max(message.held_epoch, search.rumours.get(at, 0))

    def _meet_rival(self, message: Found, own_epoch: int, now: float, *, present: bool) -> None:
        """There is a session here, and perhaps a later one elsewhere: one of them ends.

        That happens after a client began anew while its session was out of reach. Of two sessions the later
        pair stays, for both brokers must come to the same end; but one whose client is here, while that of
        the other is not, takes a later epoch first.
        """
        client = message.client
        own, rival = (own_epoch, self.number), (message.held_epoch, message.held_at)
        # With equal epochs the number alone decides, or both might overtake one another in step for ever.
        overtakes = present and not message.present and own_epoch != message.held_epoch
        if message.holds and own < rival and not overtakes:
            epoch, at = rival
            self.results.append(Result(client, 0, epoch, holder=at, superseded=True))
        elif message.holds:
            epoch = own_epoch if own_epoch > message.held_epoch else self.next_epoch(client, now)
            self.claim(client, epoch, now)
            self._trails[client].given_up = epoch
        elif rival[1] in self._others and rival[1] != message.sender:
            self._letters.find(client, rival[1], own_epoch)

    def _pass_rival_on(self, trail: Trail, message: Found) -> None:
        """The session that was here has moved on: let the other one meet its broker of today."""
        _, broker = trail.latest
        if broker not in (self.number, message.sender):
            self._letters.pass_on(message.client, trail.latest, message.sender)

    def _arrived(self, message: Found, state: bytes, now: float) -> None:
        """A session came, as the answer to whatever question: it is here now, and nowhere else."""
        client = message.client
        trail = self._trail(client, now)
        is_expected = message.sender in trail.debts
        trail.repaid(message.sender)
        search = self._searches.get(client)
        if message.epoch <= trail.settled:
            self.discards.append(Discard(client, message.holder, state, trail.ending(message.epoch)))
            self._review(client, trail, now)
            return
        trail.learn((message.epoch, self.number))
        if search is not None:
            del self._searches[client]
            # A question of an earlier life of this broker may have been later than all it knew since.
            epoch = search.epoch if search.epoch >= message.epoch else self.next_epoch(client, now)
            trail.settle(epoch)
            self.results.append(Result(client, search.ticket, epoch, state, message.holder))
            return
        epoch, broker = trail.latest
        heir = self._heirs.pop(client, None)
        if heir is not None:
            trail.settle(max([message.epoch, *(debt.epoch for debt in trail.debts.values())]))
            self._letters.tell(client, heir.pair, state=state, holder=message.holder)
        elif broker == self.number or is_expected:
            if broker != self.number:
                # Somebody was heard of who has not asked here, and so does not expect to be sent anything.
                epoch = message.epoch
                self._letters.find(client, broker, epoch)
            trail.settle(epoch)
            self.results.append(Result(client, 0, epoch, state, message.holder))
        else:  # the question was forgotten; the one who asked last was told that nothing is here
            self._letters.tell(client, trail.latest, state=state, holder=message.holder)

    # Time ------------------------------------------------------------------------------------------------

    def time_passed(self, now: float) -> None:
        """Give up on brokers that were asked too long ago, and on those that are out of reach."""
        for client in [*self._searches, *self._heirs]:
            self._review(client, self._trails[client], now)

    def next_moment(self) -> float | None:
        """When `time_passed` has something to do, at the latest, if nobody comes into reach or goes out."""
        return min((search.deadline_s for search in self._searches.values()), default=None)

    def _review(self, client: int, trail: Trail, now: float) -> None:
        """End a search that has nothing to wait for; answer the heir, if there is one."""
        search = self._searches.get(client)
        while search is not None and self._goes_on(client, trail, search, now):
            search = self._searches.get(client)
        self._review_heir(client, trail)

    def _goes_on(self, client: int, trail: Trail, search: Search, now: float) -> bool:
        """Take the next step of a search, if there is one now; return whether to look for another at once."""
        for broker in sorted(search.silent - search.asked - self.out_of_reach.keys()):
            self._ask(client, trail, search, broker, now)  # it was out of reach
        for broker in sorted(search.rumours.keys() - search.silent):
            if broker in search.confronted:  # it knows nothing of such a connection any more
                self._overtake(client, trail, search, now)
                return True
            search.confronted.add(broker)
            search.silent.add(broker)
            search.asked.discard(broker)
            return True
        hopeless = self.out_of_reach.keys() | trail.excuses.keys()
        if search.silent - hopeless and now < search.deadline_s:
            return False
        if search.named is not None:
            self._ask_all(client, trail, search, now)
            return True
        self._end(client, trail, search, now)
        return False

    def _end(self, client: int, trail: Trail, search: Search, now: float) -> None:
        """End a search that found nothing."""
        del self._searches[client]
        missing = trail.missing(search.silent, self.number)
        is_hopeless = all(now - self.out_of_reach.get(broker, now) >= self._give_up_s for broker in missing)
        if missing and not is_hopeless:
            self.results.append(Result(client, search.ticket, search.epoch, unreachable=missing))
            return
        epoch = search.epoch
        if trail.latest > (epoch, self.number):
            epoch = self.next_epoch(client, now)
            search.asked.clear()
        for broker in sorted(missing - search.asked):  # whatever there is, ends when it is in reach again
            self._letters.find(client, broker, epoch)
        trail.settle(epoch)
        if missing:
            trail.given_up = epoch
        self.results.append(Result(client, search.ticket, epoch, given_up=missing))

    def _supersede(self, client: int, search: Search) -> None:
        """The client is elsewhere; what was asked is answered all the same."""
        del self._searches[client]
        self.results.append(Result(client, search.ticket, search.epoch, superseded=True))

    def _review_heir(self, client: int, trail: Trail) -> None:
        """Answer the heir once nothing can come any more; or tell it that this may take long."""
        heir = self._heirs.get(client)
        if heir is None:
            return
        if not trail.debts:
            del self._heirs[client]
            self._letters.answer(client, trail, heir.pair, present=False)
        elif not heir.knows and trail.debts.keys() <= self.out_of_reach.keys() | trail.excuses.keys():
            self._heirs[client] = Heir(heir.pair, knows=True)
            waits_for = trail.missing(set(trail.debts), self.number)
            self._letters.tell(client, heir.pair, waits_for=tuple(sorted(waits_for)))
