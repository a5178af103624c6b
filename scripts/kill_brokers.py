"""Kills every broker of a running network in turn, again and again, and looks for what was lost.

    python scripts/kill_brokers.py --seconds 300 [--delete-stores [--copies 1 [--away 8]]]

A template of `sojourn init` is run by `sojourn serve --all`, without copies unless some are asked for. Plain
MQTT clients (`plain_clients.py`) roam over its brokers and publish at QoS 1 and 2, while every few seconds
the next broker is killed with SIGKILL; `serve --all` starts it again. In the end every acknowledged event is
looked for at every subscriber: what brokers still have is late, and it is said where; the rest is lost.
With `--delete-stores` a broker also loses its store each time: what only it had is then lost, and that is
counted.

What the columns mean: `doubled` are deliveries that came again without DUP although the event was published
once; `published twice` those of events that a publisher had to send again, which MQTT allows; `disordered`
events that came after a later one of the same publisher, told apart from those whose publisher had changed
brokers, between which MQTT promises no order.

With `--copies 1` as well, a store that was deleted is at another process too, and nothing may be missing. The
next broker is killed as soon as all copies are whole again, if that takes longer than `--every`. With
`--away` every second broker is not started again for so long, so that others play it meanwhile.
Without, every missing delivery is explained by a store that was deleted, or else is a fault
(`missing_events.py`), and what brokers reported as lost stands beside it.

Exit code 1: something acknowledged was lost, doubled or out of order or a session unknown (unless stores are
deleted that nobody has copies of), something is missing that no deleted store explains, or `serve --all` gave
up.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from missing_events import UNEXPLAINED, Death, Missed, explain
from plain_clients import Event, Publisher, Subscriber
from rich.console import Console
from rich.table import Table
from soak_network import LOOK_S, START_S, Network, began_s

BACK_S_MAX = 60.0
QUIET_S = 60.0
"""When nothing has come to anybody for so long, and brokers have nothing for anybody, the rest is lost."""
SETTLE_S_MAX = 1_200.0
"""So long is waited for what is late: on a machine that is far too busy it still comes."""
SAY_S = 20.0
"""How often it is said meanwhile what is late, and where it is."""
FINISH_S_MAX = 180.0
"""How long publishers may take to settle their last event."""
LINKS_S = 2.0
"""Links should be back so soon after a broker was started again."""
SUBSCRIBER_STAYS_S = (1.5, 5.0)
PUBLISHER_STAYS_S = (4.0, 12.0)


# The run ---------------------------------------------------------------------------------------------------


async def kill_in_turn(network: Network, options: argparse.Namespace, console: Console) -> list[Death]:
    """Kill one broker after the other; return how each came back."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    watches: list[asyncio.Task[Death]] = []
    returns: list[asyncio.Task[None]] = []
    number = 0
    while loop.time() + options.every < began + options.seconds:
        await asyncio.sleep(max(0.0, began + (number + 1) * options.every - loop.time()))
        if options.copies and not await _wait_until_whole(network, began + options.seconds):
            break
        name = network.names[number % len(network.names)]
        killed_s, at_s = time.time(), loop.time() - began
        if options.away and number % 2:
            network.hold_back()
        pid = network.kill(name)
        store = "kept"
        if options.delete_stores:
            store = await asyncio.to_thread(network.delete_store, name, pid)
        away_s = options.away if number % 2 else 0.0
        said = [f"killed {name}"] + [f"store {store}"] * (store != "kept")
        console.print(f"{at_s:6.1f} s: " + ", ".join(said + [f"away for {away_s:g} s"] * (away_s > 0)))
        if away_s:
            returns.append(asyncio.create_task(_let_back(network, away_s)))
        watches.append(asyncio.create_task(_watch(network, name, pid, killed_s, at_s, store)))
        number += 1
    await asyncio.sleep(max(0.0, began + options.seconds - loop.time()))
    await asyncio.gather(*returns)
    return list(await asyncio.gather(*watches))


async def _let_back(network: Network, away_s: float) -> None:
    """Let whoever starts brokers again do so after a while."""
    await asyncio.sleep(away_s)
    network.let_back()


async def _wait_until_whole(network: Network, until_s: float) -> bool:
    """Wait until copies are whole again: no more disks are lost at once than there are copies."""
    while not await asyncio.to_thread(network.is_whole):
        if asyncio.get_running_loop().time() > until_s:
            return False
        await asyncio.sleep(0.5)
    return True


async def _watch(network: Network, name: str, pid: int, killed_s: float, at_s: float, store: str) -> Death:
    """Wait until a broker that was killed listens and its links are up."""
    started_s: float | None = None
    listens_s: float | None = None
    while time.time() < killed_s + BACK_S_MAX:
        if listens_s is None and network.listening(name).pid != pid:
            listens_s = time.time() - killed_s
            started_s = began_s(network.listening(name).pid) - killed_s
        linked_s = None
        if listens_s is not None:
            linked_s = await asyncio.to_thread(network.linked_s, name, killed_s)
        if linked_s is not None:
            return Death(name, killed_s, at_s, started_s, listens_s, linked_s - killed_s, store)
        await asyncio.sleep(LOOK_S)
    return Death(name, killed_s, at_s, started_s, listens_s, None, store)


class Late:
    """What is still to come, looked at again and again."""

    def __init__(self, run: Run) -> None:
        wanted = run.acknowledged()
        self._pending = {one: wanted - one.got.keys() for one in run.subscribers}
        self.count = sum(map(len, self._pending.values()))

    def look(self) -> bool:
        """Whether something has come since the last look."""
        before = self.count
        for one, events in self._pending.items():
            if events:
                self._pending[one] = {event for event in events if event not in one.got}
        self.count = sum(map(len, self._pending.values()))
        return self.count < before

    def whose(self) -> str:
        """Say to whom, from whom, and where these clients are."""
        readers = [one for one, events in self._pending.items() if events]
        writers = Counter(event.publisher for events in self._pending.values() for event in events)
        places = Counter(one.here if one.is_connected else "nowhere" for one in readers)
        return (
            f"to {len(readers)} subscribers, now at "
            + ", ".join(f"{place} ({count})" for place, count in sorted(places.items()))
            + ", from "
            + ", ".join(f"{name} ({count})" for name, count in sorted(writers.items()))
        )


class Run:
    """The clients of one run, and what became of their events."""

    def __init__(self, network: Network, options: argparse.Namespace) -> None:
        self.options = options
        self.still_held = 0
        """What brokers still had for somebody when the run stopped waiting."""
        names = network.names
        self.subscribers = [
            Subscriber(f"reader-{k}", 1 + k % 2, network.places, f"{options.seed}/{k}", tells=k % 4 < 2)
            for k in range(options.subscribers)
        ]
        self.publishers = [
            Publisher(
                f"writer-{k}",
                1 + k % 2,
                network.places,
                f"{options.seed}/p{k}",
                home=names[k % len(names)] if k % 4 < 2 else None,
            )
            for k in range(options.publishers)
        ]

    async def run(self, network: Network, console: Console) -> list[Death]:
        """Let clients talk while brokers die; return when all has come, or nothing comes any more."""
        low, high = (self.options.stays * one for one in SUBSCRIBER_STAYS_S)
        reading = [asyncio.create_task(one.run((low, high))) for one in self.subscribers]
        async with asyncio.timeout(START_S):
            for task, subscriber in zip(reading, self.subscribers, strict=True):
                ready = asyncio.create_task(subscriber.ready.wait())
                await asyncio.wait([ready, task], return_when=asyncio.FIRST_COMPLETED)
                if task.done():  # it will never be ready
                    task.result()
        pause_s = len(self.publishers) / self.options.rate
        writing = [asyncio.create_task(one.run(pause_s, PUBLISHER_STAYS_S)) for one in self.publishers]
        deaths = await kill_in_turn(network, self.options, console)
        for publisher in self.publishers:
            publisher.ends = True
        _, unfinished = await asyncio.wait(writing, timeout=FINISH_S_MAX)
        await self._settle(network, console)
        for task in [*reading, *unfinished]:
            task.cancel()
        await asyncio.gather(*reading, *writing, return_exceptions=True)
        return deaths

    async def _settle(self, network: Network, console: Console) -> None:
        """Wait until all has come, or nothing comes any more and no broker has anything for anybody.

        What is missing then is lost. What brokers still have after `SETTLE_S_MAX` is late, and it is said
        where it is.
        """
        loop = asyncio.get_running_loop()
        began = changed = said = loop.time()
        late = Late(self)
        while late.count and loop.time() < began + SETTLE_S_MAX:
            await asyncio.sleep(0.2)
            if late.look():
                changed = loop.time()
            if loop.time() < said + SAY_S:
                continue
            said = loop.time()
            broken = await asyncio.to_thread(network.not_whole) if self.options.copies else []
            held, where = await asyncio.to_thread(network.held)
            console.print(f"{said - began:6.1f} s later: {late.count} deliveries are to come; {late.whose()}")
            for sentence in [*broken, *where]:
                console.print(f"          {sentence}")
            if said > changed + QUIET_S and not broken and not held:
                break
            self.still_held = held
        if not late.count:
            self.still_held = 0
        # What comes twice comes after its first copy.
        await asyncio.sleep(2.0)
        console.print(
            f"{loop.time() - began:.0f} s after the last publish {self.missing()} deliveries are missing."
        )

    def acknowledged(self, qos: int | None = None) -> set[Event]:
        """The events that publishers were promised something about."""
        chosen = [one for one in self.publishers if qos in (None, one.qos)]
        return {event for one in chosen for event in one.acknowledged}

    def missing(self) -> int:
        """How many deliveries have not come yet."""
        return len(self.missed())

    def missed(self) -> list[Missed]:
        """Every acknowledged event that a subscriber has not got."""
        told = {event: when for one in self.publishers for event, when in one.acknowledged.items()}
        return [
            Missed(one, event, told[event])
            for one in self.subscribers
            for event in told.keys() - one.got.keys()
        ]

    def rows(self) -> list[dict[str, Any]]:
        """What became of events, by the QoS that they were published and subscribed with."""
        rows = []
        moving = {one.name for one in self.publishers if one.home is None}
        repeated = {event for one in self.publishers for event in one.repeated}
        for published in (1, 2):
            wanted = self.acknowledged(published)
            names = {one.name for one in self.publishers if one.qos == published}
            for subscribed in (1, 2):
                readers = [one for one in self.subscribers if one.qos == subscribed]
                doubled = [event for one in readers for event in one.doubled if event.publisher in names]
                mixed = [event for one in readers for event in one.disordered if event.publisher in names]
                got = sum(len(wanted & one.got.keys()) for one in readers)
                rows.append(
                    {
                        "published/subscribed QoS": f"{published}/{subscribed}",
                        "acknowledged": len(wanted),
                        "deliveries": len(wanted) * len(readers),
                        "delivered": got,
                        "lost": len(wanted) * len(readers) - got,
                        "doubled": sum(event not in repeated for event in doubled),
                        "published twice": sum(event in repeated for event in doubled),
                        "disordered": sum(event.publisher not in moving for event in mixed),
                        "its publisher moved": sum(event.publisher in moving for event in mixed),
                    }
                )
        return rows

    def remarks(self) -> list[str]:
        """What else is worth knowing."""
        clients = [*self.subscribers, *self.publishers]
        refused = sum((one.refused for one in clients), start=type(clients[0].refused)())
        codes = ", ".join(f"{count} with {code:#04x}" for code, count in sorted(refused.items()))
        stays = sum(one.moves for one in self.subscribers)
        again = sum(one.again for one in self.subscribers)
        denied = sum(one.denied for one in self.publishers)
        unknown = sum(len(one.losses) for one in clients)
        return [
            f"{stays} stays of {len(self.subscribers)} subscribers; {again} deliveries came again with DUP.",
            f"Connections refused: {codes or 'none'}; publishes refused: {denied}.",
            f"Sessions that a broker did not know although they had not expired: {unknown}.",
        ]


# The verdict -----------------------------------------------------------------------------------------------


def show(console: Console, rows: list[dict[str, Any]], deaths: list[Death]) -> None:
    """Print what was counted."""
    table = Table(*rows[0], box=None, header_style="bold")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else value for value in row.values()))
    console.print(table)
    table = Table(
        "killed", "at s", "restarted after s", "listens after s", "links up after s", "store", box=None
    )
    for death in deaths:
        moments = (death.started_s, death.listens_s, death.linked_s)
        times = ("never" if value is None else f"{value:.2f}" for value in moments)
        table.add_row(death.broker, f"{death.at_s:.0f}", *times, death.store)
    console.print(table)
    back = sorted(death.relinked_s for death in deaths if death.relinked_s is not None)
    if back:
        in_time = sum(value <= LINKS_S for value in back)
        console.print(
            f"Links were back within {LINKS_S:g} s of the restart in {in_time} of {len(deaths)} cases: after "
            f"{back[len(back) // 2]:.2f} s (median), {back[-1]:.2f} s (longest) since the new process began."
        )
        waits = sorted(
            max(0.0, death.linked_s - death.listens_s)
            for death in deaths
            if death.linked_s is not None and death.listens_s is not None
        )
        in_time = sum(value <= LINKS_S for value in waits)
        console.print(
            f"Since the broker listened: within {LINKS_S:g} s in {in_time} of {len(deaths)} cases, after "
            f"{waits[len(waits) // 2]:.2f} s (median), {waits[-1]:.2f} s (longest)."
        )


def compare(run: Run, network: Network, deaths: list[Death], console: Console) -> Counter[str]:
    """Print what brokers reported as lost beside what is really missing."""
    missed = run.missed()
    losses = [loss for one in [*run.subscribers, *run.publishers] for loss in one.losses]
    reported = network.reported_losses()
    deleted = sum(death.store != "kept" for death in deaths)
    console.print(
        f"Stores deleted: {deleted}; brokers report {len(reported)} stores lost, with "
        f"{sum(one.sessions for one in reported)} sessions and up to {sum(one.events for one in reported)} "
        f"events. Sessions that clients found lost: {len(losses)}; events missing somewhere: "
        f"{len({one.event for one in missed})}."
    )
    why = explain(missed, losses, deaths)
    for reason, count in why.most_common():
        console.print(f"  {count:,} of {len(missed):,} missing deliveries: {reason}.")
    return why


def faults(
    run: Run, network: Network, deaths: list[Death], why: Counter[str], options: argparse.Namespace
) -> list[str]:
    """What makes the run a failure."""
    found = []
    rows = run.rows()
    lost = sum(row["lost"] for row in rows)
    may_lose = options.delete_stores and not options.copies
    if lost and not may_lose and run.still_held:
        found.append(
            f"{lost} deliveries had not come after {SETTLE_S_MAX:g} s, and brokers still had "
            f"{run.still_held} events, frames or bytes for somebody: late or stuck"
        )
    elif lost and not may_lose:
        found.append(f"{lost} deliveries of acknowledged events were lost")
    for what in ("doubled", "disordered"):
        count = sum(row[what] for row in rows)
        if count and not may_lose:
            found.append(f"{count} deliveries were {what}")
    unknown = sum(len(one.losses) for one in [*run.subscribers, *run.publishers])
    if unknown and not may_lose:
        found.append(f"{unknown} sessions were not known")
    if why[UNEXPLAINED]:
        found.append(f"{why[UNEXPLAINED]} missing deliveries are {UNEXPLAINED}")
    if not run.acknowledged():
        found.append("no event was acknowledged")
    if network.gave_up:
        found.append("`serve --all` gave up")
    never = [death.broker for death in deaths if death.linked_s is None]
    if never:
        found.append(f"links of {', '.join(never)} did not come back in {BACK_S_MAX:g} s")
    return found


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="how long brokers are killed")
    parser.add_argument(
        "--every", type=float, default=10.0, help="seconds between two kills; more than --seconds for none"
    )
    parser.add_argument("--delete-stores", action="store_true", help="remove the store of who is killed")
    parser.add_argument("--template", default="building", help="which template of `sojourn init`")
    parser.add_argument("--any-ports", action="store_true", help="put port 0 where the template has others")
    parser.add_argument("--copies", type=int, default=0, help="how many others hold a copy of each store")
    parser.add_argument("--away", type=float, default=0.0, help="seconds that every second one stays away")
    parser.add_argument("--subscribers", type=int, default=12)
    parser.add_argument("--publishers", type=int, default=8)
    parser.add_argument("--rate", type=float, default=40.0, help="events a second, of all publishers")
    parser.add_argument(
        "--stays", type=float, default=1.0, help="how much longer than usual subscribers stay at a broker"
    )
    parser.add_argument("--seed", type=int, default=1, help="decides who moves when and where")
    parser.add_argument("--keep", type=Path, help="a folder for configuration, stores and logs, to be kept")
    return parser.parse_args()


def main() -> None:
    """Run, print, and say by the exit code whether all is well."""
    options = read_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Terminated."))  # the brokers end as well
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    console.print("python " + " ".join(sys.argv))
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        network = Network(
            folder.absolute(), options.template, any_ports=options.any_ports, copies=options.copies
        )
        stack.callback(network.stop)
        network.wait_until_ready()
        run = Run(network, options)
        deaths = asyncio.run(run.run(network, console))
        show(console, run.rows(), deaths)
        for remark in run.remarks():
            console.print(remark)
        if options.copies:
            console.print(f"Brokers were played by other processes {network.takeovers()} times.")
        why = compare(run, network, deaths, console) if options.delete_stores else Counter()
        found = faults(run, network, deaths, why, options)
    if found:
        console.print(f"Not well: {'; '.join(found)}.")
        sys.exit(1)
    if options.delete_stores and not options.copies:
        console.print("What is missing was only in stores that were deleted; everything else flowed again.")
    else:
        console.print("All is well: nothing that was acknowledged is missing.")


if __name__ == "__main__":
    main()
