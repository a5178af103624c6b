"""A client of several brokers that stand in for one another (paper 003, section 5).

    async with ReplicaClient(["mqtt://127.0.0.1:1883", "mqtt://127.0.0.1:1884"]) as client:
        await client.subscribe("speed > 80")
        async for event in client: …

It subscribes at every replica and publishes to every replica, each event under one number. Replicas know
nothing of one another: they are brokers without links between them. The rules:

- What it shows is decided by a filter (`edge/filters.py`) over the publisher's own numbers: `none` shows the
  copy of every replica, `duplicates` shows each event once, `ordered` shows an event only if nothing newer of
  its publisher was shown. An event that its publisher did not number is shown as often as it comes.
- `ordered` never shows an old event, so it may drop one for good: a replica that came back has only what is
  new, and if it is ahead of the others, what they still bring is late. `dropped` tells copies from that.
- A retained event is no part of the stream: it is shown once, whatever was shown before.
- A replica that is down stops nothing and is tried again with growing pauses, for ever. One that refuses this
  client for good is left alone (`refusals`); only when no other is left does that end the client.
- `publish` returns when every replica that is connected has promised to keep the event, and at least one
  has. A replica that breaks away is no longer waited for; what it had not answered it is sent again.
- At most `inbox` events wait for the application; replicas keep the rest.
- What `client.py` says of cancellation and threads holds here too.
"""

from __future__ import annotations

import asyncio
import heapq
import ssl
import uuid
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple, Self

from sojourn.edge.filters import DuplicateFilter, OrderedFilter, displayer_filter
from sojourn.live.client.client import Client
from sojourn.live.client.inbox import REMEMBERED_PUBLISHERS, Received
from sojourn.live.client.link import ClientError, RefusedError, UnreachableError
from sojourn.live.client.outbox import Outbox
from sojourn.live.client.packets import may_pass
from sojourn.live.client.patience import FIRST_PAUSE_S, jittered, longer
from sojourn.live.client.subscriptions import Wish

FOR_EVER_S = 10 * 365 * 86_400.0
REMEMBERED_NUMBERS = 20_000
"""Numbers remembered of one publisher: further than that one replica is not behind another."""

Settle = Callable[[], None]


class Dropped(NamedTuple):
    """What was not shown."""

    copies: int = 0
    """Further copies of events that were shown, or dropped, before."""
    late: int = 0
    """Events that `ordered` came to know too late to show them in order: they are dropped for good."""


class Shown:
    """Decides what is shown, for each publisher by a filter of its own; a limited number of publishers."""

    def __init__(self, name: str) -> None:
        self._name = name
        displayer_filter(name)  # refuses a name that is none
        self._filters: OrderedDict[str, tuple[DuplicateFilter, OrderedFilter]] = OrderedDict()
        self._copies = self._late = 0

    @property
    def dropped(self) -> Dropped:
        """What was not shown so far."""
        return Dropped(self._copies, self._late)

    def accept(self, event: Received) -> bool:
        """Whether this copy of an event is shown."""
        publisher = event.publisher
        if self._name == "none" or not publisher:
            return True
        found = self._filters.get(publisher)
        if found is None:
            found = self._filters[publisher] = DuplicateFilter(REMEMBERED_NUMBERS), OrderedFilter()
            if len(self._filters) > REMEMBERED_PUBLISHERS:
                self._filters.popitem(last=False)
        else:
            self._filters.move_to_end(publisher)
        once, ordered = found
        # In both cases each event is noted once: that tells a late event from a copy.
        if not once.accept("", event.number):
            self._copies += 1
            return False
        if self._name == "ordered" and not event.retained and not ordered.accept("", event.number):
            self._late += 1
            return False
        return True


class Replica:
    """One of the brokers, and what is known of it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.has: dict[str, Wish] = {}
        """What was subscribed to here."""
        self.failure: Exception | None = None
        """Why it is left alone, if it is."""
        self.complaint: Exception | None = None
        """Why it has not all subscriptions, if so."""
        self.lost: asyncio.Future[None] | None = None
        """Done when the present connection breaks; None while there is none."""
        self.catching_up: asyncio.Lock = asyncio.Lock()

    async def catch_up(self, wanted: Mapping[str, Wish]) -> None:
        """Subscribe to what is wanted and not asked for here yet, and take back what is not wanted."""
        async with self.catching_up:
            for topic, one in list(wanted.items()):
                if self.has.get(topic) != one:
                    await self.client.subscribe(**asdict(one), replace=True)
                    self.has[topic] = one
            for topic in [topic for topic in self.has if topic not in wanted]:
                await self.client.unsubscribe(topic=topic)
                del self.has[topic]

    async def until_lost(self, work: asyncio.Task[None]) -> bool:
        """Wait for something to be done here; False if the connection breaks before."""
        if self.lost is not None:
            await asyncio.wait((work, self.lost), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.add_done_callback(_let_go)  # it goes on when the replica is back
            return False
        work.result()
        return True


class ReplicaClient:
    """A publisher and subscriber at several brokers at once."""

    def __init__(  # noqa: PLR0913 - each is an option of the connections, as with `Client`
        self,
        urls: Sequence[str],
        *,
        filter: str = "duplicates",  # noqa: A002 - what the paper calls it
        client_id: str | None = None,
        inbox: int = 1_000,
        session_expiry_s: int = 3600,
        keep_alive_s: int = 30,
        username: str | None = None,
        password: str | None = None,
        tls: ssl.SSLContext | None = None,
        attributes: Mapping[str, Any] | None = None,
        quench: bool = False,
    ) -> None:
        if not urls:
            raise ClientError("urls is empty; name the replicas, such as mqtt://127.0.0.1:1883.")
        if inbox < 1:
            raise ClientError(f"inbox must be at least 1, not {inbox}.")
        self.client_id = client_id or f"sojourn-{uuid.uuid4().hex[:12]}"
        make = partial(
            Client,
            client_id=self.client_id,
            session_expiry_s=session_expiry_s,
            keep_alive_s=keep_alive_s,
            patience_s=FOR_EVER_S,
            inbox=inbox,
            username=username,
            password=password,
            tls=tls,
            attributes=attributes,
            quench=quench,
        )
        self.replicas = [Replica(make(url)) for url in urls]
        self._shown = Shown(filter)
        self._limit = inbox
        self._waiting: deque[tuple[Received, Settle]] = deque()
        self._there = asyncio.Event()
        self._room = asyncio.Event()
        self._wanted: dict[str, Wish] = {}
        self._numbers = Outbox()
        self._waits_for: dict[int, set[Replica]] = {}
        """By number of an event that was sent: the replicas whose answer is waited for."""
        self._unsent: list[int] = []
        """Numbers of events that no replica has, or may have; a heap."""
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def dropped(self) -> Dropped:
        """What was not shown so far, copies and late events apart."""
        return self._shown.dropped

    @property
    def connected(self) -> list[str]:
        """The addresses of the replicas that it is connected to."""
        return [str(one.client.address) for one in self.replicas if one.lost is not None]

    @property
    def refusals(self) -> dict[str, str]:
        """By address of a replica that is left alone or refuses a subscription: why."""
        reasons = {str(one.client.address): one.failure or one.complaint for one in self.replicas}
        return {address: str(reason) for address, reason in reasons.items() if reason is not None}

    # Connecting ----------------------------------------------------------------------------------------

    async def connect(self, timeout_s: float = 10.0) -> None:
        """Connect to all; returns when all were tried and one answered, within a time."""
        loop = asyncio.get_running_loop()
        tried = []
        for replica in self.replicas:
            replica.client.on_change = partial(self._on_change, replica)
            first_try: asyncio.Future[None] = loop.create_future()
            tried.append(first_try)
            self._begin(self._keep(replica, first_try))
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*tried)
                await self._some()
        except TimeoutError:
            await self.close()
            names = ", ".join(str(replica.client.address) for replica in self.replicas)
            raise UnreachableError(f"None of {names} answered within {timeout_s:g} s.") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect from all; sessions stay there until they expire."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*(replica.client.close() for replica in self.replicas))
        self._there.set()
        self._changed.set()

    async def __aenter__(self) -> Self:
        """Connect."""
        await self.connect()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Disconnect."""
        await self.close()

    async def _keep(self, replica: Replica, first_try: asyncio.Future[None]) -> None:
        """Reach a replica for the first time, however long that takes, then pass on what it sends."""
        pause_s = FIRST_PAUSE_S
        while not replica.client.connections:
            try:
                await replica.client.connect(patient=False)
            except (OSError, TimeoutError, ClientError) as error:
                if isinstance(error, RefusedError) and not may_pass(error.code):
                    self._give_up(replica, error)
                if not first_try.done():
                    first_try.set_result(None)
                if replica.failure is not None:
                    return
                await asyncio.sleep(jittered(pause_s))
                pause_s = longer(pause_s)
        if not first_try.done():
            first_try.set_result(None)
        try:
            while True:
                event, settle = await replica.client.take()
                await self._put(event, settle)
        except ClientError as error:
            if not self._closed:
                self._give_up(replica, error)

    def _give_up(self, replica: Replica, error: Exception) -> None:
        replica.failure = error
        self._forget(replica)
        self._changed.set()
        self._there.set()

    def _forget(self, replica: Replica) -> None:
        """Wait for nothing more from a replica; what no other has is to be sent again before anything new."""
        if replica.lost is None:
            return
        replica.lost.set_result(None)
        replica.lost = None
        for number, replicas in self._waits_for.items():
            if replica in replicas:
                replicas.discard(replica)
                if not replicas:
                    heapq.heappush(self._unsent, number)

    def _on_change(self, replica: Replica) -> None:
        self._forget(replica)
        if replica.client.connected and not self._closed:
            replica.lost = asyncio.get_running_loop().create_future()
            self._begin(self._catch_up(replica))
        self._changed.set()

    async def _catch_up(self, replica: Replica) -> None:
        try:
            await replica.catch_up(self._wanted)
        except RefusedError as error:
            replica.complaint = error  # what one replica refuses, another may grant
        except ClientError:
            pass  # it broke away again

    async def _some(self) -> list[Replica]:
        """The replicas that are connected, once there are any."""
        while not self._closed:
            found = [replica for replica in self.replicas if replica.lost is not None]
            if found:
                return found
            self._check_hope()
            self._changed.clear()
            await self._changed.wait()
        raise ClientError("The client is closed.")

    def _check_hope(self) -> None:
        failures = [replica.failure for replica in self.replicas if replica.failure is not None]
        if len(failures) == len(self.replicas):
            raise failures[0]

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Subscribing ---------------------------------------------------------------------------------------

    async def subscribe(
        self,
        filter: str = "",  # noqa: A002 - what it is
        *,
        topic: str = "#",
        qos: int = 1,
        keep: str | None = None,
        expiry_s: float | None = None,
        budget_bytes: int | None = None,
        replace: bool = False,
    ) -> None:
        """Subscribe as `Client.subscribe` does, everywhere; replicas that are down learn of it when back."""
        wish = Wish(
            filter=filter, topic=topic, qos=qos, keep=keep, expiry_s=expiry_s, budget_bytes=budget_bytes
        )
        wish.packet(1)  # what cannot be asked for is refused here, and not at a replica later
        before = self._wanted.get(topic)
        if not replace:
            wish.check_room(before)
        self._wanted[topic] = wish
        try:
            await self._at_all(lambda replica: replica.catch_up(self._wanted))
        except ClientError:
            del self._wanted[topic]
            if before is not None:
                self._wanted[topic] = before
            raise

    async def unsubscribe(self, *, topic: str = "#") -> None:
        """Take back the subscription to a topic filter, everywhere."""
        self._wanted.pop(topic, None)
        await self._at_all(lambda replica: replica.catch_up(self._wanted))

    async def _put(self, event: Received, settle: Settle) -> None:
        while len(self._waiting) >= self._limit:
            self._room.clear()
            await self._room.wait()
        # Judged when there is room, and queued at once: what was judged first is shown first.
        if self._shown.accept(event):
            self._waiting.append((event, settle))
            self._there.set()
        else:
            settle()

    async def take(self, timeout_s: float | None = None) -> tuple[Received, Settle]:
        """The next event, and what to call when it is safe: until then its replica keeps it."""
        async with asyncio.timeout(timeout_s):
            while not self._waiting:
                if self._closed:
                    raise ClientError("The client is closed.")
                self._check_hope()
                self._there.clear()
                await self._there.wait()
        self._room.set()
        return self._waiting.popleft()

    async def next(self, timeout_s: float | None = None) -> Received:
        """The next event; `TimeoutError` if none comes in time."""
        event, settle = await self.take(timeout_s)
        settle()
        return event

    async def __aiter__(self) -> AsyncIterator[Received]:
        """The events that the filter lets through, until the client is closed."""
        while self._waiting or not self._closed:
            try:
                event, settle = await self.take()
            except ClientError:
                if self._closed:
                    return
                raise
            yield event
            settle()

    # Publishing ----------------------------------------------------------------------------------------

    async def publish(
        self,
        topic: str,
        payload: bytes | str | Mapping[str, Any] = b"",
        *,
        attributes: Mapping[str, Any] | None = None,
        qos: int = 1,
        retain: bool = False,
        policy: str = "",
        expires_s: int | None = None,
    ) -> None:
        """Publish an event to every replica; the options are those of `Client.publish`."""
        number = self._numbers.number()
        options: dict[str, Any] = {
            "attributes": attributes,
            "qos": qos,
            "retain": retain,
            "policy": policy,
            "expires_s": expires_s,
            "number": number,
        }
        heapq.heappush(self._unsent, number)
        try:
            while True:
                replicas = await self._turn(number)
                self._waits_for[number] = set(replicas)
                if await _any_of(replicas, lambda one: one.client.publish(topic, payload, **options)):
                    return
        finally:
            self._waits_for.pop(number, None)
            if number in self._unsent:
                self._unsent.remove(number)
                heapq.heapify(self._unsent)
            self._changed.set()

    async def _turn(self, number: int) -> list[Replica]:
        """Wait until a replica is there and nothing older is to be sent: no replica takes it after this."""
        while True:
            replicas = await self._some()
            if self._unsent[0] == number:
                heapq.heappop(self._unsent)
                return replicas
            self._changed.clear()
            await self._changed.wait()

    async def _at_all(self, ask: Callable[[Replica], Any]) -> None:
        """Do the same at every replica that is connected, until it was done at one at least."""
        while not await _any_of(await self._some(), ask):
            pass


async def _any_of(replicas: list[Replica], ask: Callable[[Replica], Any]) -> bool:
    """Do the same at several replicas; whether it was done at one before all of them broke away."""
    create_task = asyncio.get_running_loop().create_task
    works = [(replica, create_task(ask(replica))) for replica in replicas]
    answers = await asyncio.gather(
        *(replica.until_lost(work) for replica, work in works), return_exceptions=True
    )
    if True in answers:
        return True
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return False


def _let_go(task: asyncio.Task[None]) -> None:
    """Take note of how something ended that nobody waits for."""
    if not task.cancelled():
        task.exception()
