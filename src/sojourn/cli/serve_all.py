"""`sojourn serve FILE --all`: every broker as a process, one view of them, and an orderly end.

The brokers are ready when the links between them stand, for events cross no sooner; links that take too long
and brokers that do not start are named, and the others go on without them, and trying. On a terminal the view
is a table that is drawn anew every half second; in a pipe or a service's log only what changes is said.

A broker that ends is started again at once and comes back from its store; the pause before that grows while
it dies young. It is given up only if it fails by itself, `FAILURES_MAX` times in a row, before it has served
anybody: that is a broken store or configuration, and no restart mends it. The others serve on meanwhile. When
no broker is left, or none started at all, the command ends with an error.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sojourn.cli.brought_along import brought_along
from sojourn.cli.logs import LogFormat
from sojourn.cli.voice import Voice
from sojourn.errors import SojournError
from sojourn.live.addresses import Listening
from sojourn.live.brokers.fleet import START_S, Fleet, FleetError, last_line
from sojourn.live.brokers.occupied import occupied
from sojourn.live.config import Config
from sojourn.live.page.status import Report

FAILURES_MAX = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
STEADY_S = 30.0
"""A broker that ran so long is forgiven its earlier ends."""
LOOK_S = 0.1
DRAW_EVERY = 5
"""The table is drawn anew after so many looks."""
LINKS_S = 10.0
"""How long the links may take to stand before that is said."""
HASTE_S = 0.1
SILENT_S = 2.0
"""How long there is nothing to say about waiting for brokers and links."""
SAY_EVERY_S = 10.0
REASONS_MAX = 2
"""Of so many brokers it is said why they cannot start."""


class ServeAllError(SojournError):
    """No broker runs any more."""


@dataclass(slots=True)
class Watched:
    """What is known of one broker process."""

    since_s: float
    report: Report | None = None
    restarts: int = 0
    """How often it was started again, in all."""
    young: int = 0
    """How often in a row it ended before it had run for `STEADY_S`."""
    failures: int = 0
    """How often in a row it ended by itself before it told anything."""
    where: Listening | None = None
    """Where it was last said to listen."""
    start_at_s: float | None = None
    """When it is started again; None while it runs, or for ever once it was given up."""
    given_up: bool = False
    said: str = ""


class Keeper:
    """Watches over the brokers and starts again those that end."""

    def __init__(self, fleet: Fleet, say: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._say = say
        now = time.monotonic()
        self.watched = {name: Watched(now) for name in fleet.processes}
        self._has_announced = False

    def look(self, now: float) -> None:
        """Take in what was told, notice who has ended, start again whose time has come."""
        for name, one in self.watched.items():
            report = self._fleet.report(name)
            if report is not None:
                one.report = report
                one.failures = 0
                if self._has_announced:
                    self._announce(name, one)
            if one.given_up:
                continue
            if one.start_at_s is not None:
                if now >= one.start_at_s:
                    self._start_again(name, one, now)
            elif self._fleet.processes[name].poll() is not None:
                self._ended(name, one, now)

    def _start_again(self, name: str, one: Watched, now: float) -> None:
        try:
            self._fleet.restart(name)
        except FleetError as error:  # the others go on, and so does who watches over them
            one.start_at_s = now + LONGEST_PAUSE_S
            if one.said != str(error):
                one.said = str(error)
                self._say(f"{name} cannot be started again for now: {error}")
            return
        one.start_at_s, one.since_s = None, now
        one.restarts += 1
        self._say(f"{name} is started again")

    def announce_all(self) -> None:
        """Say where every broker listens; from now on also when one comes back elsewhere."""
        self._has_announced = True
        for name, one in self.watched.items():
            self._announce(name, one)
        for text in brought_along(one.where for one in self.watched.values() if one.where is not None):
            self._say(text)

    def _announce(self, name: str, one: Watched) -> None:
        """Say where a broker listens, if it came back elsewhere."""
        where = self._fleet.listening(name)
        if where is None or where == one.where:
            return
        before, one.where = one.where, where
        if before is None or before.place != where.place:
            for text in sentences(where):
                self._say(text)

    def _ended(self, name: str, one: Watched, now: float) -> None:
        code = self._fleet.processes[name].returncode
        if code == 0 and self._fleet.has_left(name):
            one.given_up, one.report = True, None
            self._say(f"{name} has left the network")
            return
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        one.said = last_line(self._fleet.log(name)) if code > 0 else ""
        one.failures = one.failures + 1 if code > 0 and one.report is None else 0
        one.young = 0 if now - one.since_s > STEADY_S else one.young + 1
        one.report = None
        why = f": {one.said}" if one.said else ""
        if one.failures >= FAILURES_MAX:
            one.given_up = True
            self._say(f"{name} {how} and is given up; see {self._fleet.log_path(name)}{why}")
            return
        one.start_at_s = now + min(FIRST_PAUSE_S * 2 ** max(0, one.young - 1), LONGEST_PAUSE_S)
        self._say(f"{name} {how}{why}")

    def missing(self) -> list[str]:
        """The links that are down as far as brokers said, and those of a broker that has said nothing yet.

        Of the links in a configuration brokers use those that make a tree, and tell of these.
        """
        found: dict[frozenset[str], str] = {}
        failing = {name for name, one in self.watched.items() if one.given_up or one.failures}
        for name, one in self.watched.items():
            if name in failing:
                continue  # it does not start, and that was said
            if one.report is None:
                found[frozenset((name,))] = f"of {name}"
                continue
            for peer, link in one.report.links.items():
                if not link.up and peer not in failing:
                    found.setdefault(frozenset((name, peer)), f"{name}-{peer}")
        return list(found.values())

    def silent(self) -> list[str]:
        """The brokers that have neither said where they listen nor failed."""
        return [
            name
            for name, one in self.watched.items()
            if not (one.failures or one.given_up or self._fleet.listening(name) is not None)
        ]

    def absent(self) -> list[str]:
        """The brokers that do not serve now: they failed, or were given up."""
        return [name for name in self.watched if self._fleet.listening(name) is None]

    def check_some_start(self) -> None:
        """Raise what the first broker said if none has started: that is no single broker's trouble."""
        if not all(one.failures or one.given_up for one in self.watched.values()):
            return
        name, one = next(iter(self.watched.items()))
        raise FleetError(f"The broker {name} ended at once: {one.said}")

    @property
    def all_given_up(self) -> bool:
        """Whether no broker is left."""
        return all(one.given_up for one in self.watched.values())


def serve_all(path: Path, config: Config, logs: Path, *, log: LogFormat, verbose: bool) -> None:
    """Run all brokers of a configuration until SIGINT or SIGTERM."""
    check_free(path, config)
    console = Console(stderr=True, highlight=False)
    say = Voice(console)
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in _SIGNALS}
    names = [broker.name for broker in config.brokers]
    options = ["--log", log.value, *(["--verbose"] if verbose else [])]
    # Beside the logs there may be no room for addresses; brokers with free ports have a folder for them.
    spare = tempfile.TemporaryDirectory(prefix="sojourn-")
    addresses = Path(config.network.addresses or spare.name)
    fleet = Fleet(path, names, logs, options=options, reports=True, addresses=addresses)
    hung_up = signal.signal(signal.SIGHUP, lambda *_: fleet.reload())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # it waited until there are brokers to tell
    try:
        say(f"starting {len(names)} brokers; their logs are in {logs}")
        keeper = Keeper(fleet, say)
        wait_for_brokers(keeper, stopped, say)
        if config.links:
            wait_for_links(keeper, stopped, say)
        if not stopped.is_set():
            keeper.announce_all()
            say(ready(keeper.absent()))
        if console.is_terminal:
            with Live(console=console, refresh_per_second=4, transient=True) as live:
                _watch(keeper, stopped, lambda: live.update(view(config, keeper.watched)))
        else:
            _watch(keeper, stopped, lambda: None)
        if not stopped.is_set():
            raise ServeAllError(f"No broker runs any more; their logs are in {logs}.")
        say("stopping all brokers")
    except FleetError:
        if not stopped.is_set():  # else they ended because they were told to
            raise
    finally:
        signal.signal(signal.SIGHUP, hung_up)
        fleet.stop()
        spare.cleanup()
        for number, handler in before.items():
            signal.signal(number, handler)


def check_free(path: Path, config: Config) -> None:
    """Say at once that all brokers run already, before their logs are begun anew.

    Where only some are in the way the others serve, and those that cannot start are named as they fail.
    """
    found = [(broker.name, occupied(broker)) for broker in config.brokers]
    if all(why is not None for _, why in found):
        reasons = "; ".join(f"{name}: {why}" for name, why in found[:REASONS_MAX])
        more = f"; and {len(found) - REASONS_MAX} more" if len(found) > REASONS_MAX else ""
        brokers = "the broker runs" if len(found) == 1 else "all brokers run"
        raise FleetError(
            f"It seems that {brokers} already ({reasons}{more}): stop what is there first, or give {path} "
            "other stores and ports."
        )


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _watch(keeper: Keeper, stopped: threading.Event, draw: Callable[[], None]) -> None:
    looks = 0
    while not stopped.wait(LOOK_S) and not keeper.all_given_up:
        keeper.look(time.monotonic())
        if looks % DRAW_EVERY == 0:
            draw()
        looks += 1


def wait_for_brokers(
    keeper: Keeper, stopped: threading.Event, say: Callable[[str], None], limit_s: float = START_S
) -> None:
    """Wait until every broker listens; one that fails does not keep the others from serving."""
    since = time.monotonic()
    say_s = min(SILENT_S, limit_s)
    while silent := keeper.silent():
        passed_s = time.monotonic() - since
        if passed_s >= say_s:
            say_s += SAY_EVERY_S
            see = "; see the logs" if passed_s >= limit_s else ""
            say(f"waiting for {', '.join(silent)} to listen, for {passed_s:.0f} s{see}")
        if stopped.wait(HASTE_S):
            return
        keeper.look(time.monotonic())
        keeper.check_some_start()


def wait_for_links(
    keeper: Keeper, stopped: threading.Event, say: Callable[[str], None], limit_s: float = LINKS_S
) -> None:
    """Wait until brokers are linked with one another, but not for ever: say which are not, and go on."""
    since = time.monotonic()
    is_silent = True
    while missing := keeper.missing():
        now = time.monotonic()
        if now - since >= limit_s:
            say(f"after {limit_s:g} s there is no link {', '.join(missing)}; it is tried on, see the logs")
            return
        if is_silent and now - since >= min(SILENT_S, limit_s):
            is_silent = False
            say(f"waiting for links between brokers: {', '.join(missing)}")
        if stopped.wait(HASTE_S) or keeper.all_given_up:
            return
        keeper.look(time.monotonic())


def ready(absent: list[str]) -> str:
    """Say that all is done that there is to wait for, as scripts look for it, and without whom."""
    without = f", without {', '.join(absent)}" if absent else ""
    return f"ready{without}; Ctrl-C stops them all"


def sentences(where: Listening) -> list[str]:
    """Say where a broker listens and where its page is, or why there is none."""
    said = [f"broker {where.broker} listens on mqtt://{where.clients}"]
    if where.page is not None:
        said[0] += f"; its page is http://{where.page}/"
    elif where.without_page is not None:
        said.append(f"{where.broker} runs without its page: {where.without_page}")
    return said


# The view ------------------------------------------------------------------------------------------------


def view(config: Config, watched: dict[str, Watched]) -> Group:
    """The brokers as a table, with what was lost or refused below."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("broker", "state"):
        table.add_column(heading)
    for heading in ("clients", "sessions", "in/s", "out/s", "waiting", "hand-offs", "mean ms"):
        table.add_column(heading, justify="right")
    table.add_column("links")
    for broker in config.brokers:
        table.add_row(broker.name, *_row(watched[broker.name]))
    reports = [one.report for one in watched.values() if one.report is not None]
    return Group(table, _amiss(reports), Text("Ctrl-C stops all brokers.", style="dim"))


def _row(one: Watched) -> list[Text]:
    if one.given_up:
        return [Text("given up", style="red")]
    if one.start_at_s is not None:
        return [Text("ended, comes back", style="red")]
    if one.report is None:
        return [Text("starting", style="yellow")]
    report = one.report
    state = Text("refuses QoS 1+2", style="red") if report.refusing else Text("up", style="green")
    if one.restarts:
        state.append(f" (restarted {one.restarts}x)", style="yellow")
    links = Text(" ").join(
        Text(
            peer if link.up else f"{peer} down {link.down_s:.0f} s, {size(link.queue_bytes)} waiting",
            style="green" if link.up else "red",
        )
        for peer, link in sorted(report.links.items())
    )
    mean = f"{1e3 * report.handoff_sum_s / report.handoffs:,.1f}" if report.handoffs else "-"
    numbers = (
        f"{report.clients:,}",
        f"{report.sessions:,}",
        f"{report.published_rate:,.0f}",
        f"{report.delivered_rate:,.0f}",
        size(report.queue_bytes),
        f"{report.handoffs:,}",
        mean,
    )
    return [state, *map(Text, numbers), links]


def _amiss(reports: list[Report]) -> Text:
    text = Text()
    for label, tables in (
        ("not delivered", [report.dropped for report in reports]),
        ("refused", [report.refused for report in reports]),
        ("mended", [mended(report) for report in reports]),
    ):
        counts: dict[str, int] = {}
        for table in tables:
            for reason, count in table.items():
                counts[reason] = counts.get(reason, 0) + count
        parts = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in sorted(counts.items()))
        text.append(f"{label}: {parts or 'nothing'}\n", style="yellow" if parts else "dim")
    text.rstrip()
    return text


def mended(report: Report) -> dict[str, int]:
    """What went amiss at a broker and was made good, as far as it could be."""
    counts = {
        "links told all anew": sum(link.resets for link in report.links.values()),
        "events sent again by a neighbour": report.repeated,
        "SUBACKs not confirmed by all": report.unconfirmed,
        "events that a neighbour forgot": report.forgotten,
    }
    return {what: count for what, count in counts.items() if count}


def size(count: int) -> str:
    """A number of bytes as people read it."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
