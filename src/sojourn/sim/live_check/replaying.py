"""What live brokers recorded, told again to the same pure broker, and lived on from there.

- All facts of a journal are told again; none may be refused, since the broker noted what it had taken in.
- Where the journal before a snapshot is still there, it must lead to the state that the snapshot holds.
- What is true of every broker must be true of this one (`broken_rules`), also once its state was written out
  and read again.
- Where all brokers of a network are there, they live on in a world without faults: all links come up, all
  that waits between brokers arrives, and retained values are the same everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.network import Network
from sojourn.broker.reviving import remembered
from sojourn.broker.settings import Settings
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.tree import overlay_of
from sojourn.mqtt.shares import Shares
from sojourn.mqtt.state import State
from sojourn.sim.live_check.comparing import differences
from sojourn.sim.live_check.ending import LINKS_S
from sojourn.sim.live_check.oracle import FailedCheckError
from sojourn.sim.live_check.process import LATER_S, START_S, Process
from sojourn.sim.live_check.script import OUTPUT_BYTES, Script, Spec
from sojourn.sim.live_check.world import World

LIFE = "replay"
SOON_S = 1.0


class Recorded(NamedTuple):
    """What a broker's store holds."""

    name: str
    snapshot: bytes | None
    entries: list[bytes]
    """The journal since the snapshot."""
    before: tuple[bytes | None, list[bytes]] | None = None
    """The snapshot before that, if there was one, and the journal from there to the present one."""


class Replayed(NamedTuple):
    """What came of it."""

    settings: Settings
    broker: LiveBroker
    facts: Counter[str]
    """By kind: how many were told."""
    compared: int | None
    """How many facts lead to the snapshot; None if they are not there any more."""
    problems: list[str]


def replay(recorded: Recorded) -> Replayed | None:
    """Tell a broker again what it noted; None if that is nothing."""
    settings = _settings(recorded.snapshot, recorded.entries)
    if settings is None:
        return None
    problems: list[str] = []
    broker = _revived(settings, recorded.snapshot, recorded.entries)
    if broker.refused_again:
        problems.append(f"refuses {broker.refused_again} facts that it had noted")
    compared = None
    if recorded.before is not None and recorded.snapshot is not None:
        compared = len(recorded.before[1])
        kept = Snapshot.read(recorded.snapshot)
        # Both begin their next life at the same time, whatever was the last that each of them noted.
        one = _revived(kept.settings, *recorded.before, kept.now + LATER_S)
        other = _revived(kept.settings, recorded.snapshot, [], kept.now + LATER_S)
        problems += [f"replay and snapshot differ in {name}" for name in differences(one, other)]
    problems += broken_rules(broker)
    broker.turn(broker.now_s)
    again = remembered(LiveBroker, settings, LIFE, broker.snapshot(), [])  # in the same life
    problems += [f"a snapshot changes {name}" for name in differences(broker, again)]
    problems += [f"after a snapshot {rule}" for rule in broken_rules(again)]
    kinds = Counter(type(facts.read_entry(entry).fact).__name__ for entry in recorded.entries)
    return Replayed(settings, broker, kinds, compared, problems)


def _settings(snapshot: bytes | None, entries: Iterable[bytes]) -> Settings | None:
    """Return the last settings that a broker had."""
    found = Snapshot.read(snapshot).settings if snapshot is not None else None
    for entry in entries:
        fact = facts.read_entry(entry).fact
        if isinstance(fact, facts.Started):
            found = fact.settings
    return found


def _revived(
    settings: Settings, snapshot: bytes | None, entries: list[bytes], now_s: float = 0.0
) -> LiveBroker:
    return LiveBroker.revived(settings, LIFE, now_s, snapshot, entries)


def broken_rules(broker: LiveBroker) -> list[str]:
    """Return what should be true of every broker and is not true of this one, in half sentences."""
    found = []
    for session in broker.core.state.sessions.values():
        sent = [one for one in session.inflight.values() if one is not None]
        if session.inflight_bytes != sum(one.message.size for one in sent):
            found.append(f"{session.client_id} has {session.inflight_bytes} bytes in flight, by its books")
        if session.queued_bytes != sum(one.message.size for one in session.queue):
            found.append(f"{session.client_id} has {session.queued_bytes} bytes waiting, by its books")
        if not all(0 < number <= 0xFFFF for number in session.inflight):
            found.append(f"{session.client_id} was sent packets with impossible numbers")
    found += _wrong_shares(broker.core.state)
    if broker.network is None:
        return found
    for peer, channel in broker.network.links.channels.items():
        if not 0 <= channel.kept <= channel.last:
            found.append(f"frames for {peer} are kept from {channel.kept} on, of {channel.last}")
        if bool(channel.queued) != bool(channel.waiting):
            found.append(f"{channel.waiting} frames for {peer} wait with {channel.queued} bytes")
    subscribers = broker.network.clients.broker.subscribers
    for client, holding in subscribers.main.items():
        name = broker.network.links.names.client_name(client)
        if any(mark < 0 for mark in holding.marks.values()):
            found.append(f"{name} has consumed less than nothing")
        if not holding.queue and holding.bytes:
            found.append(f"{holding.bytes} bytes are stored for {name} in no event")
    return found + _wrong_accounts(broker.network)


def _wrong_shares(state: State) -> list[str]:
    """Return which addresses have other wills and retained messages than counting gives."""
    found = []
    wills: Counter[str] = Counter()
    for session in state.sessions.values():
        if session.address is not None:
            wills[session.address] += session.will_bytes
    for address, use in state.address_uses.by_address.items():
        if use.will_bytes != wills[address]:
            found.append(f"{address} has {use.will_bytes} bytes of wills, by its books")
    shares = Shares()
    shares.count(state.retained.kept())
    if shares.by_party != state.retained.shares.by_party:
        found.append("somebody has other retained messages than by its books")
    return found


def _wrong_accounts(network: Network) -> list[str]:
    """Return whose account of what is stored is not what counting gives."""
    found = []
    for party, account in network.clients.broker.subscribers.accounts.by_party.items():
        stored = [event for one in account.holdings for event in (*one.queue, *one.forwarded)]
        counted = set(stored) if account.is_shared else stored
        if account.bytes != sum(event.size for event in counted):
            found.append(f"{account.bytes} bytes are stored for {party}, by its account")
    return found


# Living on -------------------------------------------------------------------------------------------------


class RecordedWorld(World):
    """Brokers that were recorded, with nobody but them."""

    def __init__(self, all_recorded: Sequence[tuple[Recorded, Settings]]) -> None:
        self._all = all_recorded
        names = [settings.name for _, settings in all_recorded]
        count = len(names)
        super().__init__(
            Script(
                spec=Spec(seed=0, seconds=LINKS_S),
                brokers=count,
                links=_links_in_use(all_recorded[0][1], names),
                scheme="",
                routing="",
                publishers="",
                power_safe=(False,) * count,
                reports=False,
                output_bytes=OUTPUT_BYTES[-1],
                personas=(),
                offsets_s=tuple(_offset_s(recorded) for recorded, _ in all_recorded),
                steps=[],
            )
        )

    def make_process(self, number: int) -> Process:
        """Return the process of one of them, with what its disk holds."""
        recorded, settings = self._all[number]
        process = Process(self, number, settings, power_safe=False)
        if recorded.snapshot is not None:
            process.disk.append(recorded.snapshot, 0.0, sync=True)
        process.disk.append(recorded.entries, 0.0, sync=True)
        return process


def _links_in_use(settings: Settings, names: list[str]) -> tuple[tuple[int, int], ...]:
    """Return the links of the tree that brokers use, by the places of their names."""
    tree = overlay_of(settings)
    places = [names.index(name) for name in settings.brokers]
    return tuple((places[one], places[up]) for one, up in enumerate(tree.parent) if up >= 0)


def _offset_s(recorded: Recorded) -> float:
    """Return how far the clock of a broker was from that of the world when it noted its last fact."""
    if recorded.entries:
        return facts.read_entry(recorded.entries[-1]).now + SOON_S - START_S
    return Snapshot.read(recorded.snapshot).now + SOON_S - START_S if recorded.snapshot is not None else 0.0


def live_on(all_recorded: Sequence[tuple[Recorded, Settings]]) -> str | None:
    """Let all brokers of a network live on; return what went wrong, if anything did."""
    world = RecordedWorld(all_recorded)
    try:
        world.run()
        for link in world.links:
            if not link.is_up:
                return f"the link {link.caller.name}-{link.called.name} is not up after {LINKS_S:g} s"
        for process in world.processes:
            if process.broker is None or process.broker.network is None:
                return f"{process.name} is not back"
            for peer, channel in process.broker.network.links.channels.items():
                if channel.waiting:
                    return f"{channel.waiting} frames of {process.name} for {peer} do not arrive"
    except FailedCheckError as error:
        return str(error)
    return _different_retained(world)


def _different_retained(world: World) -> str | None:
    """Return which topic's retained value is not the same at two brokers, if there is one."""
    kept = []
    for process in world.processes:
        assert process.broker is not None, "all are back"
        found = process.broker.core.state.retained.matching("#", process.now())
        kept.append({message.topic: message.payload for message in found})
    for process, values in zip(world.processes, kept, strict=True):
        for topic in sorted(values.keys() | kept[0].keys()):
            if values.get(topic) != kept[0].get(topic):
                return f"{process.name} and {world.processes[0].name} retain different values of {topic}"
    return None
