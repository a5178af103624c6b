"""What a broker that serves a subscriber, or served it last, asks of other brokers."""

from sojourn.mobility.holdings import Holding
from sojourn.mobility.keeping import Keeping
from sojourn.routing.messages import Activate, Copy, Deactivate, Delete, Moved


class Requests(Keeping):
    """The requests, built from the stay that they are about."""

    __slots__ = ()

    def _targets(self, stay: Holding) -> set[int]:
        """The brokers that the subscriber may come to next."""
        likely = self.predictor.likely(self.number, stay.origin) if self.predictor is not None else None
        brokers = self.table.neighbours(self.now) if likely is None else likely
        return set(brokers) - {self.number}

    def _choose_holders(self, stay: Holding) -> None:
        """Settle where copies are to be, before anybody is told."""
        if self.scheme.ahead and stay.subscriptions:
            stay.holders |= self._targets(stay)

    def _spread(self, stay: Holding, known: tuple[int, ...]) -> None:
        """Case 1: passive copies to the neighbours that have none yet."""
        for broker in sorted(stay.holders.difference(known)):
            self._copy(stay, broker)

    def _copy(self, stay: Holding, broker: int) -> None:
        self._send(
            Copy(
                destination=broker,
                sender=self.number,
                client=stay.client,
                epoch=stay.epoch,
                cause=stay.cause,
                subscriptions=stay.subscriptions,
                version=stay.version,
                others=tuple(sorted(stay.holders)),
            )
        )

    def _announce(self, stay: Holding, previous: int, *, wants: bool) -> None:
        """Tell the old broker that the subscriber is here."""
        stay.asked = stay.began
        self._send(
            Moved(
                destination=previous,
                sender=self.number,
                client=stay.client,
                epoch=stay.began,
                cause=stay.cause,
                marks=dict(stay.marks) if stay.marks else None,
                holders=tuple(sorted(stay.holders)),
                wants=wants,
                subscriptions=stay.subscriptions,
                version=stay.version,
            )
        )

    def _abandon(self, stay: Holding) -> None:
        """A stay ends before it could ask for its events: let whoever has them go, too."""
        if stay.is_asking and stay.origin is not None:
            stay.is_asking = False
            self._announce(stay, stay.origin, wants=False)

    def _activate(self, stay: Holding, broker: int, subscriptions: tuple[int, ...] | None) -> None:
        self._send(
            Activate(
                destination=broker,
                sender=self.number,
                client=stay.client,
                epoch=stay.epoch,
                cause=stay.cause,
                marks=dict(stay.marks),
                others=tuple(sorted(stay.holders)),
                version=stay.version,
                subscriptions=subscriptions,
            )
        )

    def _deactivate(self, stay: Holding, broker: int, cause: int) -> None:
        self._send(
            Deactivate(
                destination=broker, sender=self.number, client=stay.client, epoch=stay.epoch, cause=cause
            )
        )

    def _delete(self, stay: Holding, broker: int, cause: int, *, for_good: bool = False) -> None:
        self._send(
            Delete(
                destination=broker,
                sender=self.number,
                client=stay.client,
                epoch=stay.epoch,
                cause=cause,
                for_good=for_good,
            )
        )
