"""What a broker that serves a subscriber, or served it last, asks of other brokers."""

from sojourn.mobility.holdings import Holding
from sojourn.mobility.memory import Moment
from sojourn.mobility.neighbour_table import NeighbourTable
from sojourn.mobility.post import Post
from sojourn.mobility.prediction import Foresight
from sojourn.mobility.schemes import Scheme
from sojourn.routing.messages import Activate, Ask, Copy, Deactivate, Delete, Moved


class Requests:
    """Sends requests, built from the stay that they are about, to the brokers that it knows to be near."""

    __slots__ = ("_moment", "_post", "_scheme", "foresight", "table")

    def __init__(self, scheme: Scheme, post: Post, moment: Moment, foresight: Foresight | None) -> None:
        self._scheme = scheme
        self._post = post
        self._moment = moment
        self.foresight = foresight
        self.table = NeighbourTable(scheme.neighbours_max, scheme.edge_timeout_s)

    # Where to ----------------------------------------------------------------------------------------

    def crossed(self, broker: int) -> None:
        """A subscriber went from here to that broker, or came from it: it is a neighbour."""
        if self._scheme.ahead and broker != self._post.number:
            self.table.cross(broker, self._moment.now)

    def targets(self, stay: Holding) -> set[int]:
        """The brokers that the subscriber may come to next."""
        number, now, likely = self._post.number, self._moment.now, None
        if self.foresight is not None:
            likely = self.foresight.next_brokers(stay.client, number, stay.origin, now)
        brokers = self.table.neighbours(now) if likely is None else likely
        return set(brokers) - {number}

    def choose_holders(self, stay: Holding) -> None:
        """Settle where copies are to be, before anybody is told."""
        if self._scheme.prepares and stay.subscriptions:
            stay.holders |= self.targets(stay)

    # To the old broker -------------------------------------------------------------------------------

    def seek(self, stay: Holding, known: tuple[int, ...]) -> None:
        """Tell the old broker, or ask it what the client wants; then have copies made."""
        self.choose_holders(stay)
        if stay.origin is not None:
            if stay.is_asking:
                self._ask(stay, stay.origin)
                return
            self.announce(stay, stay.origin, wants=not stay.complete)
            known = (*known, stay.origin)
        self.spread(stay, known)

    def _ask(self, stay: Holding, previous: int) -> None:
        self._post.send(
            Ask(
                destination=previous,
                sender=self._post.number,
                client=stay.client,
                epoch=stay.began,
                cause=stay.cause,
            )
        )

    def announce(self, stay: Holding, previous: int, *, wants: bool) -> None:
        """Tell the old broker that the subscriber is here."""
        stay.asked = stay.began
        self._post.send(
            Moved(
                destination=previous,
                sender=self._post.number,
                client=stay.client,
                epoch=stay.began,
                cause=stay.cause,
                marks=dict(stay.marks) if stay.marks else None,
                holders=tuple(sorted(stay.holders)),
                wants=wants,
                subscriptions=stay.subscriptions,
                version=stay.version,
                last_epoch=stay.last_epoch,
            )
        )

    def abandon(self, stay: Holding) -> None:
        """A stay ends before it could ask for its events: let whoever has them go, too."""
        if stay.is_asking and stay.origin is not None:
            stay.is_asking = False
            self.announce(stay, stay.origin, wants=False)

    # To brokers with copies --------------------------------------------------------------------------

    def spread(self, stay: Holding, known: tuple[int, ...]) -> None:
        """Case 1: passive copies to the neighbours that have none yet."""
        for broker in sorted(stay.holders.difference(known)):
            self._copy(stay, broker)

    def _copy(self, stay: Holding, broker: int) -> None:
        self._post.send(
            Copy(
                destination=broker,
                sender=self._post.number,
                client=stay.client,
                epoch=stay.epoch,
                cause=stay.cause,
                subscriptions=stay.subscriptions,
                version=stay.version,
                others=tuple(sorted(stay.holders)),
            )
        )

    def activate(self, stay: Holding, broker: int, subscriptions: tuple[int, ...] | None) -> None:
        """Case 2: have events stored by a copy, which is given along where it is missing."""
        self._post.send(
            Activate(
                destination=broker,
                sender=self._post.number,
                client=stay.client,
                epoch=stay.epoch,
                cause=stay.cause,
                marks=dict(stay.marks),
                others=tuple(sorted(stay.holders)),
                version=stay.version,
                subscriptions=subscriptions,
                party=stay.account.party if stay.account is not None else None,
            )
        )

    def deactivate(self, stay: Holding, broker: int, cause: int) -> None:
        """Cases 3 and 4: have a copy store no more."""
        self._post.send(
            Deactivate(
                destination=broker,
                sender=self._post.number,
                client=stay.client,
                epoch=stay.epoch,
                cause=cause,
            )
        )

    def delete(self, stay: Holding, broker: int, cause: int, *, for_good: bool = False) -> None:
        """Cases 4, 6 and 8: have a copy forgotten."""
        self._post.send(
            Delete(
                destination=broker,
                sender=self._post.number,
                client=stay.client,
                epoch=stay.epoch,
                cause=cause,
                for_good=for_good,
            )
        )
