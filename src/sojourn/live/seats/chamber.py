"""Drives a process's council: connections, folders and clocks become facts, and what it wants is done.

    chamber = Chamber(config, "B1", loop, book)
    await chamber.start(before)         # from here on this process keeps copies, and votes
    node = await chamber.play_own()     # once its own broker may be played

No decision is taken here. Brokers of other processes are played as guests: they have neighbours and sessions,
but no door for clients, which come to any other broker and are handed over.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import ClassVar

from sojourn.broker import facts
from sojourn.broker.seats import effects as do
from sojourn.broker.seats.council import TICK_S, Council
from sojourn.broker.seats.desk import Terms
from sojourn.broker.seats.messages import (
    ROLL,
    Detour,
    DetourAt,
    Message,
    MessageReader,
    Seat,
    SeatError,
    write_message,
)
from sojourn.errors import SojournError
from sojourn.live.addresses import AddressBook, Listening, true_address
from sojourn.live.brokers.node import Node
from sojourn.live.config import Address, Config, parse_address
from sojourn.live.seats.copied import Copied, Guest
from sojourn.live.seats.detours import Detours, Surroundings
from sojourn.live.seats.folders import Folders
from sojourn.live.seats.mesh import book_name, make_mesh
from sojourn.live.seats.pump import Pump
from sojourn.live.seats.revivals import revived
from sojourn.live.seats.roll_files import on_roll, who_joins
from sojourn.live.seats.watching import Watch, who_plays
from sojourn.live.store.errors import JournalError
from sojourn.live.store.folder import FolderError

TOLD_S = 0.05
"""How long a process waits before it does what holds it up, so that others hear of it."""

_log = logging.getLogger("sojourn.seats")


class SeatLostError(SojournError):
    """Another process plays a broker now."""


class Chamber:
    """One process among those that keep copies of one another's brokers."""

    def __init__(self, config: Config, name: str, loop: asyncio.AbstractEventLoop, book: AddressBook) -> None:
        place = config.broker(name)
        assert place.store is not None, "a configuration with copies names stores"
        assert place.seats is not None, "and where the others connect"
        self.config, self.name, self._loop, self._book = config, name, loop, book
        self._read = config
        """As its file was read last; the other one has those too that joined since it was written."""
        self._wanted = parse_address(place.seats, "seats")
        self.copies = config.mobility.copies
        self.folders = Folders(name, place.store, power_safe=place.power_safe)
        names = tuple(sorted(broker.name for broker in config.brokers))
        network = config.network
        register = self.folders.read_register(names, network.joined, network.left)
        self.folders.open_all(sorted({*names, *register.entries} - {ROLL}))
        terms = Terms(
            name,
            names,
            tuple(config.links),
            config.mobility.copies,
            config.mobility.gone_s,
            birth=secrets.token_hex(8),
        )
        self.council = Council(terms, register, self.folders, loop.time())
        if name in self.council.register.roll.seat.left:
            raise SeatLostError(
                f"{name} has left the network: `sojourn leave` takes it out of its file. To let it join "
                "again, give it a new name and a new store."
            )
        self.mesh = make_mesh(config, name, book, self._tell)
        self.pump = Pump(self.mesh, self.folders, loop, self.outran, self._unreadable)
        patience_s = config.mobility.gone_s
        around = Surroundings(
            self._wanted.host, patience_s, self._where, self._others, self._plays, self._say, self._end_link
        )
        self.detours = Detours(around, loop)
        self._readers: dict[str, MessageReader] = {}
        self._may_serve = asyncio.Event()
        """Set while the broker whose home this is may be played."""
        self._revivals: dict[str, asyncio.Task[Node]] = {}
        """By broker: what reads its journal in order to play it."""
        self.own: Node | None = None
        self.guests: dict[str, Guest] = {}
        self.takeovers = 0
        """Brokers of other processes that this one began to play."""
        self._hosts = {one: entry.seat.host for one, entry in self.council.register.seats.items()}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_running = False
        self._has_ended = False
        self.failure: SojournError | None = None
        """Why this process cannot go on."""
        self._watch = Watch(self.council, name, loop.time())
        roll = self.council.register.roll.seat
        self._voters = set(roll.members)
        self._regroup(roll)
        self.expect(config)
        self._run()

    async def start(self, before: str | None) -> Address | None:
        """Listen for other processes, and begin to call them."""
        address = await self.mesh.start(self._wanted, before)
        said = Listening(broker=book_name(self.name), pid=0, clients="", seats=str(address))
        self._book.write(said)
        self._tick()
        return address

    async def play_own(self) -> Node:
        """Return the broker whose home this is at work, once it may be played."""
        while True:
            await self._may_serve.wait()
            if self.failure is not None:
                raise self.failure
            reviving = self._revivals[self.name] = self._loop.create_task(self._revive(self.name))
            try:
                await asyncio.wait({reviving})
            finally:
                reviving.cancel()
            if not reviving.cancelled():
                return reviving.result()

    def waits_for(self) -> str:
        """Say what the broker whose home this is waits for, before it is at work."""
        why = "its journal is read." if self._may_serve.is_set() else self.council.why_not(self.name)
        return f"{self.name} does not serve yet: {why}"

    async def _revive(self, name: str) -> Node:
        """Return a broker at work that is this process's to play; cancelled when it no longer is."""
        await asyncio.sleep(TOLD_S)  # the others are told first that this may take a while
        try:
            journal = self.folders.held[name].journal
            node = await revived(lambda: self.config, name, self._book, Copied(self, name), journal)
        finally:
            if self._revivals.get(name) is asyncio.current_task():
                del self._revivals[name]
        if name == self.name:
            self.own = node
        else:
            self.guests[name] = Guest(node)
            node.on_failure = lambda: self._failed(name)
            self.takeovers += 1
        self.council.revived()
        self.logged(name)
        return node

    def expect(self, config: Config) -> None:
        """Let processes join by this one that a configuration has, and the others have not yet."""
        self._read = config
        joining = who_joins(config, self.name, self.council.register.roll.seat)
        self.council.invite(joining)
        self.mesh.rearrange([*self.mesh.peers, *joining])
        network = None if self.own is None else self.own.network
        if network is not None:  # of those that were to join, some never came, and the file says so
            self.council.parted({*config.network.left}.difference(network.settings.brokers))

    def _regroup(self, roll: Seat) -> None:
        """Go by a roll: its processes may connect, and their brokers may be played here."""
        self.config = on_roll(self.config, roll)
        # Who has left and does not know it may ask, too.
        self.mesh.rearrange([*self.mesh.peers, *(one for one in roll.members if one != self.name)])

    def stop(self) -> None:
        """End all connections, and the brokers that are played as guests."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self.detours.stop()
        for name in list(self.guests):
            self._end_guest(name, "This process stops.")
        for task in (*self._tasks, *self._revivals.values()):
            task.cancel()
        self.mesh.abort()
        self.folders.close()

    def where(self, name: str, at_home: Address | None) -> Address | None:
        """Return where neighbours find a broker; None while the process that plays it has not said so."""
        if self.council.seat(name).host == name:
            return at_home
        address = self.council.address(name)
        return None if address is None else parse_address(address, f"the place of {name}")

    def _say(self, peer: str, message: Message) -> None:
        self.mesh.write(peer, write_message(message))

    def _end_link(self, caller: str, name: str) -> None:
        """End the link of a broker that is played here: its neighbour is in reach by a better way."""
        guest = self.guests.get(caller)
        node = self.own if caller == self.name else None if guest is None else guest.node
        if node is not None and node.links is not None and node.failure is None:
            node.links.close(name, f"{name} can be reached directly again.")

    def _where(self, name: str) -> Address | None:
        """Return the same of any broker of the network, whether or not it is a neighbour."""
        place = next((one for one in self.config.brokers if one.name == name), None)
        if place is None or place.peers is None:
            return None
        at_home: Address | None = parse_address(place.peers, f"peers of {name}")
        if at_home is not None and not at_home.port:
            said = self._book.find(name)
            at_home = None if said is None else true_address(at_home, said.peers, name)
        return self.where(name, at_home)

    def _others(self, name: str) -> list[str]:
        """Return the processes that are there, but for this one and the one that plays a broker."""
        desk, host = self.council.desk, self.council.seat(name).host
        return [one for one in desk.order.others(name) if one not in (host, desk.me) and desk.is_up(one)]

    def _plays(self, process: str, broker: str) -> bool:
        """Whether a process plays a broker, as far as this one knows."""
        return broker in self._hosts and self.council.seat(broker).host == process

    # Facts -------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._has_ended:
            return
        self._timer = self._loop.call_later(TICK_S, self._tick)
        now = self._loop.time()
        for node in self.nodes:
            if node.network is not None:
                self.council.parted(node.network.settings.left)
        played = {node.place.name for node in self.nodes} | self._revivals.keys()
        for name in self._watch.look_at_files(self.folders, played, now):
            self.council.cannot_play(name)
        self.council.tick(now)
        self._run()
        if self.own is not None and self.own.outbox is not None and self.own.failure is None:
            self._watch.look(self.own.outbox, now)
            self._watch.count_voters(now)
        if not self._may_serve.is_set():
            self._watch.wait_to_serve(self.waits_for, now)

    def _tell(self, fact: facts.Fact) -> None:
        """Take what the connections tell."""
        if self._has_ended:
            return
        now = self._loop.time()
        if isinstance(fact, facts.PeerConnected):
            self._readers[fact.peer] = MessageReader()
            self.council.connected(fact.peer, now)
        elif isinstance(fact, facts.PeerLost):
            self._readers.pop(fact.peer, None)
            self.council.lost(fact.peer, now)
        elif isinstance(fact, facts.PeerSent):
            self._heard(fact.peer, fact.data, now)
        self._run()

    def _heard(self, peer: str, data: bytes, now: float) -> None:
        reader = self._readers.get(peer)
        if reader is None:
            return
        try:
            for message in reader.arrived(data):
                if isinstance(message, Detour | DetourAt):
                    self.detours.heard(peer, message)
                    continue
                self.council.heard(peer, message, now)
                self._run()
        except SeatError as error:
            self.mesh.close(peer, str(error))
        except (JournalError, OSError) as error:
            self.council.cannot_keep(now)
            self._run()
            self.mesh.close(peer, f"its lines cannot be kept: {error}")

    def logged(self, name: str) -> None:
        """A broker that is played here has noted more."""
        self.pump.more(name)
        self.council.logged(name)
        self._run()

    def outran(self, name: str, peer: str) -> None:
        """A snapshot took the place of lines that a process was still to be told."""
        self.council.outran(name, peer)

    def _unreadable(self, name: str, why: str) -> None:
        """What is held of a broker was to be told to another process, and is damaged."""
        node = next((one for one in self.nodes if one.place.name == name), None)
        if node is not None and node.keeper is not None:
            # Who plays it has all of it in mind: its store is written anew, and copied from that.
            if not node.keeper.is_gone:
                _log.error("The store of %s is written anew: %s", name, why)
                node.keeper.is_gone = True
            return
        _log.error("%s cannot be copied from here: %s It is copied anew once somebody plays it", name, why)
        self.council.cannot_play(name)
        self._run()

    def _fail(self, error: SojournError) -> None:
        """End without a further word."""
        self.failure = error
        self._has_ended = True
        self.mesh.abort()
        if self.own is not None:
            self.own.fail(error)
        self._may_serve.set()  # whoever waits for that learns why it is in vain

    # Effects -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Do what the council wants, in order; what that leads to comes after it."""
        if self._is_running or self.failure is not None:
            return
        self._is_running = True
        try:
            while effects := self.council.take_effects():
                for effect in effects:
                    self._DOERS[type(effect)](self, effect)
                    if self._has_ended:
                        return
        finally:
            self._is_running = False
        for node in self.nodes:
            if node.outbox is not None and node.outbox.turns and node.failure is None:
                node.outbox.leave()

    @property
    def nodes(self) -> list[Node]:
        """The brokers that this process plays."""
        own = [] if self.own is None else [self.own]
        return own + [guest.node for guest in self.guests.values()]

    def _save(self, effect: do.Save) -> None:
        """Note votes; who cannot do that any more ends, before anybody hears of what is not noted."""
        try:
            self.folders.save_register(effect.register)
        except OSError as error:
            if self._timer is None:
                raise  # it has not begun, and nobody has heard of it
            self._fail(
                FolderError(
                    f"{self.name} cannot note its votes about copies any more: {error.strerror}. It ends, "
                    "and others play it; mend that, and start it again."
                )
            )

    def _send(self, effect: do.Send) -> None:
        self._say(effect.peer, effect.message)

    def _close(self, effect: do.Close) -> None:
        self.mesh.close(effect.peer, effect.why)

    def _ship(self, effect: do.Ship) -> None:
        self.pump.begin(effect.name, effect.peer, effect.session, effect.number)

    def _unship(self, effect: do.Unship) -> None:
        self.pump.end(effect.name, effect.peer)

    def _install(self, effect: do.Install) -> None:
        try:
            self.folders.install(effect.name)
        except (JournalError, OSError):
            self.council.has_lost(effect.name)  # it counts as whole already, and is not
            raise

    def _seated(self, effect: do.Seated) -> None:
        """Note a term; neighbours of a broker that moves call it, or are called, where it is now."""
        seat = effect.seat
        before, self._hosts[seat.name] = self._hosts.get(seat.name, seat.name), seat.host
        if before == seat.host:
            return
        _log.warning("%s", who_plays(seat))
        for node in self.nodes:
            if node.links is not None and seat.name in node.links.peers:
                node.links.close(seat.name, f"{seat.host} plays {seat.name} now.")

    def _noticed(self, effect: do.Noticed) -> None:
        _log.warning("%s", effect.sentence)

    def _regrouped(self, effect: do.Regrouped) -> None:
        """Note who votes from now on."""
        roll = effect.roll
        # The same processes may be decided again at any time; who reads the log wants to know of others.
        level = logging.INFO if set(roll.members) == self._voters else logging.WARNING
        self._voters = set(roll.members)
        voters = ", ".join(roll.members)
        _log.log(level, "%s votes with %s about copies, by roll %d", self.name, voters, roll.term)
        self._regroup(roll)
        # One that lost its disk began with all that its file has, as if those had joined that are to join.
        self.expect(self._read)
        for name in roll.left:
            if name not in self.guests and name != self.name:
                self.folders.lend(name)

    def _serve(self, effect: do.Serve) -> None:
        if effect.name == self.name:
            self._may_serve.set()
            return
        task = self._loop.create_task(self._play_guest(effect.name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _play_guest(self, name: str) -> None:
        """Play a broker of another process, and let its neighbours find it."""
        reviving = self._revivals[name] = self._loop.create_task(self._revive(name))
        await asyncio.wait({reviving})
        if reviving.cancelled():
            return
        error = reviving.exception()
        if error is not None:
            if not isinstance(error, SojournError):
                raise error
            _log.error("%s cannot be played here: %s", name, error)
            self.council.cannot_play(name)
            self._run()
            return
        guest = self.guests.get(name)
        if guest is None or guest.node is not reviving.result():
            return
        links = guest.node.links
        if links is not None:
            address = await links.start(Address(self._wanted.host, 0))
            if self.guests.get(name) is not guest:
                links.abort()
                return
            self.council.moved_in(name, str(address))
            self._run()
        guest.observer.start()

    def _failed(self, name: str) -> None:
        """A guest cannot go on."""
        guest = self.guests.get(name)
        if guest is not None:
            _log.error("%s cannot be played here any more: %s", name, guest.node.failure)
            self._end_guest(name, str(guest.node.failure))
            self.council.has_lost(name)
            self._run()

    def _end_guest(self, name: str, why: str) -> None:
        guest = self.guests.pop(name)
        guest.node.on_failure = lambda: None
        guest.node.abandon(SeatLostError(why))
        guest.observer.stop()
        self.folders.held.pop(name, None)
        if not self._has_ended:
            self._open_again(name)

    def _open_again(self, name: str) -> None:
        """Keep as a copy what was played here; what cannot be opened for now is copied anew."""
        try:
            self.folders.open(name)
        except JournalError as error:
            _log.warning("%s It is copied anew.", error)
            self.council.has_lost(name)

    def _stop(self, effect: do.Stop) -> None:
        name = effect.name
        if name == self.name:
            self._may_serve.clear()
        if name in self._revivals:
            self._revivals.pop(name).cancel()
        elif name in self.guests:
            self._end_guest(name, effect.why)
        elif name == self.name and self.own is not None:
            if self.own.network is not None and name in self.own.network.farewells:
                return  # it has left, and has nothing to say any more
            why = f"{effect.why} This process ends, and comes back as one that keeps a copy of it."
            self.own.fail(SeatLostError(why))

    _DOERS: ClassVar[dict[type, Callable[..., None]]] = {
        do.Save: _save,
        do.Send: _send,
        do.Close: _close,
        do.Ship: _ship,
        do.Unship: _unship,
        do.Take: lambda self, effect: self.folders.take(*effect),
        do.TakePart: lambda self, effect: self.folders.take_part(*effect),
        do.Append: lambda self, effect: self.folders.append(*effect),
        do.Install: _install,
        do.Drop: lambda self, effect: self.folders.drop(effect.name),
        do.Forget: lambda self, effect: self.folders.set_aside(effect.name),
        do.Seated: _seated,
        do.Noticed: _noticed,
        do.Regrouped: _regrouped,
        do.Serve: _serve,
        do.Stop: _stop,
    }
