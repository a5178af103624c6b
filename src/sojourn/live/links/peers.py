"""The connections of one broker to its neighbours: made, accepted, lost and made again.

Of two neighbours the one whose name comes first calls the other. What travels, and what makes
it travel exactly once, is the broker's business (`broker/channel.py`); this file only moves bytes:

    links = PeerLinks("B1", ("B2", "B3"), node.tell, proof, calls={"B2": PeerAddress(…)})
    await links.start(listen)
    links.write(peer, data); links.close(peer, why)

Nobody is believed to be who it says: both ends prove it, by the secret of the network (`broker/proof.py`), by
certificates with their names, or by both. Until then the broker is told nothing. A neighbour that is not
connected costs nothing but the room of its queue; the pauses between calls grow to half a second, and any
neighbour that comes ends them. Every broker reports once a second over each link: one on which nothing comes
for `SILENCE_S` is dead, whatever TCP thinks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from sojourn.broker import facts
from sojourn.broker.frame_heads import peek_hello
from sojourn.broker.hello import HELLO_BYTES_MAX
from sojourn.broker.proof import NONCE_BYTES, ProofError, Proving
from sojourn.errors import SojournError
from sojourn.live.addresses import bind, why_not
from sojourn.live.config import Address
from sojourn.live.links.calling import called
from sojourn.live.links.complaints import Complaints
from sojourn.live.links.proofs import Proof
from sojourn.live.links.tls import certified_name
from sojourn.live.listening import Listener, keep_alive

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.5
STEADY_S = 1.0
"""A connection that lasted so long was a good one: the next call follows soon."""
CALL_S = 5.0
STOP_S = 5.0
"""How long calls may take to end when the broker stops; its store is closed whether they do or not."""
GREETING_S = 5.0
"""How long a caller may take to say who it is."""
STRANGERS_MAX = 64
"""Connections that have not proved yet who they are."""
WRITE_BUFFER_BYTES = 8 << 20
LOOK_S = 1.0
SILENCE_S = 10.0
"""A link on which nothing came for so long is closed and called again."""
UNANSWERED_SAID = 12
"""After so many calls in a row that somebody took and ended without a word, that is said: some seconds, for a
broker that joins calls others which have not heard of it yet."""
UNANSWERED = (
    "whoever listens there hangs up without a word; that is another port than its `{key}`, such as one for "
    "clients, or it does not know this broker or its certificate, of which its log says more."
)

_log = logging.getLogger("sojourn.peers")


class PeerError(SojournError):
    """A link between brokers cannot be set up."""


PeerAddress = Address
"""Where a broker listens for other brokers."""
Find = Callable[[str, Address], Address | None]
"""Tells where a neighbour really listens, given its name and what the configuration says; None if unknown."""


class PeerLinks:
    """All links of one broker."""

    kind: ClassVar[type[Connection]]
    """What takes one connection."""
    key: ClassVar[str] = "peers"
    port: ClassVar[str] = "for neighbours (`peers`)"
    """What strangers are told that the port is for."""
    purpose: ClassVar[str] = ""
    """Under which key of the configuration others are called, and what for if not for links."""
    log: ClassVar[logging.Logger] = _log

    def __init__(
        self,
        broker: str,
        peers: Sequence[str],
        tell: Callable[[facts.Fact], None],
        proof: Proof,
        *,
        calls: Mapping[str, Address],
        find: Find = lambda _peer, configured: configured,
    ) -> None:
        knows = proof.secret is not None or (proof.server_tls is not None and proof.client_tls is not None)
        assert knows or not peers, "who has neighbours has a way to know them (`knowing.py`)"
        self.broker = broker
        self.proof = proof
        """May be replaced; it holds for connections from then on."""
        self.peers = frozenset(peers)
        self.tell = tell
        self._calls = dict(calls)
        self._find = find
        self._wakes = {peer: asyncio.Event() for peer in calls}
        """By neighbour that is called: set when there is a reason not to wait for the next call."""
        self.refusals = 0
        """Connections that were ended because nobody proved who was at the other end."""
        self.on_refusal: Callable[[str, str], None] = lambda _peer, _why: None
        """Is told who was refused, and why."""
        self.may_connect: Callable[[str], bool] = lambda _peer: True
        """Is asked before somebody who has proved its name is taken for a neighbour."""
        self.process_of: Callable[[str], str] = str
        """Says whose certificate the process shows that plays a broker."""
        self.connections: dict[str, Connection] = {}
        """By neighbour: the connection that counts."""
        self.written_bytes = 0
        """What was written to neighbours in all."""
        self._strangers: dict[Connection, None] = {}
        """Connections that have not proved yet who they are, the oldest first."""
        self._callers: dict[str, asyncio.Task[None]] = {}
        self._listener: Listener | None = None
        self._unanswered: Counter[str] = Counter()
        """By neighbour: calls in a row that ended without a word."""
        self.complaints = Complaints(self.log, broker, self.purpose)

    async def start(self, listen: Address | None, before: str | None = None) -> Address | None:
        """Listen for neighbours and begin to call the others; return the address with its true port.

        `before` is where the broker listened in its last life, which is tried first if any port will do.
        """
        loop = asyncio.get_running_loop()
        found: Address | None = None
        if listen is not None:
            try:
                server, found = await bind(listen, before, self._create_server)
                self._listener = Listener(self._take, server, self.proof.server_tls, self._shut_out)
            except OSError as error:
                raise PeerError(
                    f"{self.broker} cannot listen for other brokers on {listen}: {why_not(error)}."
                ) from None
        self._callers = {
            peer: loop.create_task(self._keep_calling(peer, address)) for peer, address in self._calls.items()
        }
        return found

    async def _create_server(self, host: str, port: int) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(
            self._take, host, port, start_serving=self.proof.server_tls is None
        )

    def _take(self) -> Connection:
        """Take a connection of somebody who calls."""
        return self.kind(self, None)

    async def stop(self) -> None:
        """End all connections; the broker keeps what was not acknowledged."""
        for caller in self._callers.values():
            caller.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in [*self.connections.values(), *self._strangers]:
            connection.finish()
        if self._callers:
            _, left = await asyncio.wait(self._callers.values(), timeout=STOP_S)
            if left:
                _log.warning(
                    "%s stops although %d of its calls to neighbours do not end", self.broker, len(left)
                )

    def abort(self) -> None:
        """End all connections at once, and make no more."""
        for caller in self._callers.values():
            caller.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in [*self.connections.values(), *self._strangers]:
            connection.abort()

    async def renew(self, proof: Proof) -> None:
        """Prove who this is by something else from now on; links that stand go on."""
        self.proof = proof
        if self._listener is not None:
            await self._listener.renew(proof.server_tls)

    def rearrange(self, peers: Collection[str]) -> None:
        """Have these neighbours from now on; those that are new call, others are parted with."""
        for peer in self.peers.difference(peers):
            if peer in self._callers:
                self._callers.pop(peer).cancel()
            if peer in self.connections:
                self.connections.pop(peer).finish()
        self.peers = frozenset(peers)

    def write(self, peer: str, data: bytes) -> None:
        """Write to a neighbour, if it is there.

        A connection that has just broken may not say so yet and refuse to be written to: it is given up, and
        what else there is to write is not held up by it. What it was to carry is sent again over the next.
        """
        connection = self.connections.get(peer)
        if connection is None:
            return
        self.written_bytes += len(data)
        try:
            connection.write(data)
        except (RuntimeError, OSError) as error:
            self.complaints.of_peer(peer, str(error))
            connection.write = _ignore
            connection.abort()

    def close(self, peer: str, why: str) -> None:
        """End the connection to a neighbour; it is made anew."""
        self.complaints.of_peer(peer, why)
        connection = self.connections.get(peer)
        if connection is not None:
            connection.finish()

    async def _keep_calling(self, peer: str, configured: Address) -> None:
        loop = asyncio.get_running_loop()
        wake = self._wakes[peer]
        pause_s = FIRST_PAUSE_S
        was_there = False
        while True:
            began_s = loop.time()
            wake.clear()
            is_there = await self._call(peer, configured)
            if loop.time() - began_s > STEADY_S or (is_there and not was_there):
                # It is there again; with one that has forgotten everything the next connection is the first.
                pause_s = FIRST_PAUSE_S
            was_there = is_there
            # Not `asyncio.wait_for`: cancelled when its event is set already, that of Python 3.11 goes on.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await wake.wait()
            pause_s = FIRST_PAUSE_S if wake.is_set() else min(2 * pause_s, LONGEST_PAUSE_S)

    async def _call(self, peer: str, configured: Address) -> bool:
        """Call a neighbour once, and wait for the end; return whether the connection could be made."""
        address = self._find(peer, configured)
        if address is None:
            self.complaints.unknown(peer)
            return False
        try:
            async with asyncio.timeout(CALL_S):
                tls = self.proof.client_tls
                name = self.process_of(peer) if tls else None
                connection = await called(address, lambda: self.kind(self, peer), tls, name)
        except (OSError, TimeoutError) as error:
            self.complaints.unreached(peer, error)
            return False
        await connection.ended
        self._unanswered[peer] = 0 if connection.was_answered else self._unanswered[peer] + 1
        if self._unanswered[peer] == UNANSWERED_SAID:  # once can be a neighbour that is just being stopped
            self.complaints.of_peer(peer, UNANSWERED.format(key=self.key))
        return True

    # What connections tell -------------------------------------------------------------------------------

    def admit(self, connection: Connection, peer: str) -> None:
        """A connection is to this neighbour; an older one, half dead perhaps, makes way."""
        before = self.connections.get(peer)
        self._strangers.pop(connection, None)
        if not self.may_connect(peer):
            connection.abort()
            return
        if before is not None and before is not connection:
            self.connections.pop(peer)
            before.abort()
            self.tell(facts.PeerLost(peer))
        self.connections[peer] = connection
        if peer not in self._calls:
            for wake in self._wakes.values():
                wake.set()  # somebody came, so the others may be there again too
        self.tell(facts.PeerConnected(peer))

    def stranger(self, connection: Connection) -> None:
        """Somebody called who has not proved yet who it is; who has taken longest makes room."""
        if len(self._strangers) >= STRANGERS_MAX:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()
        self._strangers[connection] = None

    def proving(self, calls: str | None) -> Proving | None:
        """What a new connection has to go through first; None where certificates alone prove who it is."""
        proof = self.proof
        if proof.secret is None:
            return None
        nonce = secrets.token_bytes(NONCE_BYTES)
        if calls is not None:
            return Proving.of_caller(proof.secret, proof.network, self.broker, calls, nonce)
        callers = self.peers - self._calls.keys()
        return Proving(proof.secret, proof.network, self.broker, callers, nonce, self.port)

    def refuse(self, connection: Connection, error: SojournError) -> None:
        """Somebody did not prove who it is."""
        self.refusals += 1
        kind = error.kind if isinstance(error, ProofError) else type(error).__name__
        self.give_up(connection, kind, str(error))
        self.on_refusal(connection.peer or f"a stranger at {connection.host}", str(error))

    def give_up(self, connection: Connection, kind: str, why: str) -> None:
        """End a connection without further words."""
        if connection.peer is not None:
            self.complaints.of_peer(connection.peer, why, kind)
        else:
            self.complaints.of_stranger(connection.host, why, kind)
        connection.abort()

    def _shut_out(self, host: str, kind: str, why: str) -> None:
        """Somebody called whose handshake of TLS came to nothing."""
        self.refusals += 1
        self.complaints.of_stranger(host, why, kind)
        self.on_refusal(f"a stranger at {host}", why)

    def lost(self, connection: Connection) -> None:
        """A connection is gone."""
        self._strangers.pop(connection, None)
        peer = connection.peer
        if peer is not None and self.connections.get(peer) is connection:
            del self.connections[peer]
            self.tell(facts.PeerLost(peer))


def _ignore(_data: object) -> None:
    """Write nothing, as there is nobody to read it."""


class Connection(asyncio.Protocol):
    """One TCP connection to or from another broker."""

    silence_s: ClassVar[float] = SILENCE_S

    def __init__(self, links: PeerLinks, peer: str | None) -> None:
        self._links = links
        self.peer = peer
        """Who is at the other end: known to a caller, learnt by who is called."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self.write: Callable[[bytes], None] = _ignore
        """Writes; the channel's window bounds how much is ever under way."""
        self._proving = links.proving(peer)
        """What is left to prove; None when that is done."""
        self._proven: str | None = None
        """Who the other side has proved to be, by the secret."""
        self._is_admitted = False
        self.host = "an unknown address"
        """Where the other end is."""
        self._greeting = b""
        self.was_answered = False
        """Whether anything at all came."""
        self._next_look: asyncio.TimerHandle | None = None
        self._has_heard = False
        self._quiet_looks = 0
        """How often in a row there was nothing new when this was looked at."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        """Say hello, or wait for one."""
        self._transport = transport
        self.write = transport.write
        self.host = str((transport.get_extra_info("peername") or [self.host])[0])
        if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
            # The port of a neighbour that is down was given to this very call: it has reached itself.
            transport.abort()
            return
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        keep_alive(transport.get_extra_info("socket"))
        self._look_later()
        if self.peer is None:
            self._links.stranger(self)
        elif self._proving is None:
            self._admit(self.peer)
        else:
            transport.write(self._proving.outgoing)

    def data_received(self, data: bytes) -> None:
        """Hand bytes on, once it is proved whose they are."""
        self.was_answered = True
        try:
            if self._proving is not None:
                found = self._prove(self._proving, data)
                if found is None:
                    return
                data = found
            if not self._is_admitted:
                data = self._learn(self._greeting + data)
                if not self._is_admitted:
                    return
            self._has_heard = True
            self._quiet_looks = 0
            assert self.peer is not None, "who was admitted has a name"
            if self._links.connections.get(self.peer) is self:
                self._links.tell(facts.PeerSent(self.peer, data))
        except SojournError as error:
            self._links.refuse(self, error)

    def _prove(self, proving: Proving, data: bytes) -> bytes | None:
        """Go on with the proof; return what came after it once it is done."""
        assert self._transport is not None
        written = proving.arrived(data)
        if written:
            self._transport.write(written)
        if not proving.is_done:
            return None
        self._proving, self._proven = None, proving.peer
        if self.peer is not None:
            self._admit(self.peer)
        return proving.rest

    def _admit(self, peer: str) -> None:
        self._is_admitted = True
        self._links.admit(self, peer)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Tell whoever waits for the end."""
        if self._next_look is not None:
            self._next_look.cancel()
        self._transport = None
        self.write = _ignore
        self._links.lost(self)
        if not self.ended.done():
            self.ended.set_result(None)

    def finish(self) -> None:
        """End the connection after what was written."""
        if self._transport is not None:
            self._transport.close()
            asyncio.get_running_loop().call_later(CALL_S, self._transport.abort)

    def abort(self) -> None:
        """End the connection without further words."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Read no further."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._transport is not None:
            self._transport.resume_reading()

    def _learn(self, data: bytes) -> bytes:
        hello = peek_hello(data)
        if hello is None:
            if len(data) > HELLO_BYTES_MAX:
                raise ProofError("it sends more than a hello before it says who it is.")
            self._greeting = data
            return b""
        if hello.broker not in self._links.peers:
            raise ProofError("it says it is {}, which is no neighbour.", hello.broker)
        if self._proven not in (None, hello.broker):
            raise ProofError("it says it is {} and has proved to be {}.", hello.broker, self._proven)
        certified = self._certified_name()
        if certified is not None and certified != self._links.process_of(hello.broker):
            raise ProofError("it says it is {}, its certificate {}.", hello.broker, certified)
        assert (self._proven, certified) != (None, None), "nobody is a neighbour by its word alone"
        self.peer = hello.broker
        self._admit(self.peer)
        return data

    def _certified_name(self) -> str | None:
        """The name on the other side's certificate; None without TLS."""
        assert self._transport is not None
        return certified_name(self._transport)

    def _look_later(self) -> None:
        self._next_look = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Give up a connection on which nobody speaks.

        Looks are counted and not seconds: a broker that was held up itself hears first what came meanwhile.
        """
        self._quiet_looks += 1
        quiet_s = self._quiet_looks * LOOK_S
        if self._has_heard and quiet_s >= self.silence_s:
            why = f"nothing came on it for {self.silence_s:g} s."
        elif not self._has_heard and quiet_s >= GREETING_S:
            why = "nobody said hello on it."
        else:
            self._look_later()
            return
        self._links.give_up(self, why, why)


PeerLinks.kind = Connection
