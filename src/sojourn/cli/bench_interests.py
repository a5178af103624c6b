"""`sojourn bench interests`: what one more subscription costs brokers that know many already.

Two workloads are entered at one broker of six: `device/<id>/#`, the commonest pattern there is, and
conditions `device = 'd…' AND value …` on one topic, thresholds and ranges, ten a device. With all of them in
place new ones are made one by one, and every broker notes what it spends: reading the text, finding what
covers the subscription, entering it into the index of filters, writing it for its neighbours. Figures are of
the broker that spends most. The same is done with covering turned off, and, for patterns, beside the time
that Mosquitto takes to answer a SUBSCRIBE. One row has `#` in place, which covers every pattern. Memory is
that of a broker alone in a process of its own.

Last come a few cases that once made a broker spend seconds and more: many patterns in one SUBSCRIBE, many
devices with a pattern each, and many filters sent at once, simple ones and long ones. They go through whole
brokers, from the client's packets to the last link; here too `home` is what the client waits for.

Times of the clock suffer from whatever else the machine does; those of the processor do so less.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mqtt5 import QoS, SubscribePacket, TopicFilter

from sojourn.broker.names import LiveInterests, Names
from sojourn.cli.bench_interests_brokers import Hall, Six, Spent
from sojourn.cli.bench_interests_peer import mosquitto_row
from sojourn.cli.bench_live import find_mosquitto
from sojourn.cli.benchmarks import Progress, Row
from sojourn.interest.filters import Filter
from sojourn.live.brokers.collecting import rest_the_collector
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.policies import Policy
from sojourn.mqtt.conventions import FILTER
from sojourn.routing.messages import Advertise
from sojourn.routing.neighbours import Neighbours

SMALL, FULL = 5_000, 100_000
"""Subscriptions of each workload, by default and with `--full`."""
SAMPLES = 1_000
PER_DEVICE = 10
PATTERNS, CONDITIONS = "device/<id>/#", "device = … AND value …"


def pattern_text(number: int) -> str:
    """The subscription of one device to all that is its own."""
    return f"topic LIKE 'device/{number}/#'"


def condition_text(number: int) -> str:
    """A subscription to some values of one device: a threshold, or a range."""
    device, which = divmod(number, PER_DEVICE)
    low = 17 + which * 5
    values = f"value > {low}" if which % 2 else f"value BETWEEN {low} AND {low + 3 * which + 1}"
    return f"topic LIKE 'plant/#' AND device = 'd{device}' AND {values}"


WORKLOADS = {PATTERNS: pattern_text, CONDITIONS: condition_text}


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _worst(per_broker: list[list[float]], of: Callable[[list[float]], float]) -> float:
    return round(max(of(values) for values in per_broker if values), 3)


def _sampled(six: Six, name: str, first: int) -> Row:
    """Make new subscriptions of a workload, and say what the broker spends that spends most."""
    spent = Spent()
    questions, sent = six.questions, six.sent
    for number in range(first, first + SAMPLES):
        six.subscribe(number, WORKLOADS[name](number), spent)
    start = time.thread_time_ns()
    for number in range(first, first + SAMPLES):
        Filter.parse(WORKLOADS[name](number))
    read_ms = (time.thread_time_ns() - start) / SAMPLES / 1e6
    return {
        "new_median_ms": _worst(spent.clock_ms, statistics.median),
        "new_p99_ms": _worst(spent.clock_ms, lambda values: percentile(values, 0.99)),
        "new_median_cpu_ms": _worst(spent.processor_ms, statistics.median),
        "new_p99_cpu_ms": _worst(spent.processor_ms, lambda values: percentile(values, 0.99)),
        "of_it_reading_cpu_ms": round(read_ms, 3),
        "questions_per_new": round((six.questions - questions) / SAMPLES, 3),
        "hops_per_new": round((six.sent - sent) / SAMPLES, 3),
    }


def _scale_rows(count: int, *, covering: bool, progress: Progress) -> Iterator[Row]:
    """Fill six brokers with both workloads, then measure new ones of each, and under `#`."""
    six = Six(covering=covering)
    said = "with covering" if covering else "without covering"
    fill_s = {}
    for name, text in WORKLOADS.items():
        progress(f"{count:,} x {name} {said}: filling six brokers")
        start = time.process_time()
        for number in range(count):
            six.fill(number, Filter.parse(text(number)))
        fill_s[name] = round(time.process_time() - start, 1)
    thresholds = gc.get_threshold()
    rest_the_collector()
    for name in WORKLOADS:
        progress(f"{name} {said}: new ones")
        row: Row = {"row": name, "covering": covering, "subscriptions": 2 * count}
        yield row | _sampled(six, name, count) | {"fill_cpu_s": fill_s[name]}
    if covering:
        progress("new ones that # covers")
        everything = Filter.parse("topic LIKE '#'")
        six.fill(-1, everything)
        row = {"row": f"{PATTERNS} under #", "covering": True, "subscriptions": 2 * count}
        row |= _sampled(six, PATTERNS, count + SAMPLES)
        start = time.process_time()
        six.unsubscribe(-1, everything)
        yield row | {"withdrawing_#_cpu_ms": round((time.process_time() - start) * 1e3, 1)}
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def _memory(name: str, count: int, covering: bool) -> float:  # noqa: FBT001  (called in another process)
    """The resident bytes that each subscription of a workload adds to one broker."""
    interests = LiveInterests(covering=covering)
    names = Names(interests)
    broker = Broker(0, Neighbours((1, 2, 3)), interests, Policy(), lambda _from, to: to)
    for peer in (1, 2, 3):
        broker.handle(facts.Received(Advertise(interests.anything), peer), 0.0)
        broker.effects.clear()
    for number in range(-100, 0):  # what the first ones load is not theirs
        names.subscription_number(WORKLOADS[name](number))
    gc.collect()
    before = _resident_bytes()
    for number in range(count):
        sub = names.subscription_number(WORKLOADS[name](number))
        broker.handle(facts.ClientSubscribed(number, sub), 0.0)
        broker.effects.clear()
    gc.collect()
    return (_resident_bytes() - before) / count


def _resident_bytes() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def _memory_rows(count: int, progress: Progress) -> Iterator[Row]:
    context = multiprocessing.get_context("spawn")
    for name, covering in itertools.product(WORKLOADS, (True, False)):
        progress(f"{count:,} x {name}: memory of one broker")
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            found = pool.submit(_memory, name, count, covering).result()
        yield {
            "row": f"{name}, memory",
            "covering": covering,
            "subscriptions": count,
            "bytes_per_subscription": round(found),
        }


def _subscribe(packet_id: int, patterns: list[str], condition: str = "") -> SubscribePacket:
    properties = [(FILTER, condition)] if condition else []
    wanted = [TopicFilter(pattern, max_qos=QoS.AT_LEAST_ONCE) for pattern in patterns]
    return SubscribePacket(packet_id, wanted, user_properties=properties)


def _long_condition(number: int) -> str:
    """A filter of fifty alternatives over fifteen attributes, none of which covers another."""
    return " OR ".join(
        f"(a{i % 7} > {3 * i + number} AND b{(i + number) % 5} < {7 * i - number} "
        f"AND c{i % 3} BETWEEN {i} AND {i + 50 + number})"
        for i in range(50)
    )


def _filters(count: int, text: Callable[[int], str]) -> list[SubscribePacket]:
    return [_subscribe(at, [f"t/{at}/#"], text(at)) for at in range(1, count + 1)]


ATTACKS: dict[str, tuple[int, Callable[[], list[SubscribePacket]], str]] = {
    "400 patterns in one SUBSCRIBE": (
        1,
        lambda: [_subscribe(1, [f"d/{n % 10}/{n}/+" for n in range(400)])],
        "35 s at the home broker",
    ),
    "1,000 patterns in one SUBSCRIBE": (
        1,
        lambda: [_subscribe(1, [f"d/{n % 10}/{n}/+" for n in range(1_000)])],
        "no answer in 100 s",
    ),
    "500 devices, a pattern each": (500, list, "27 s at each broker"),
    "150 filters at once": (
        1,
        lambda: _filters(150, lambda at: f"value > {at} AND value < {at + 1000}"),
        "a minute in which others had no answer",
    ),
    "30 long filters at once": (1, lambda: _filters(30, _long_condition), ""),
}
"""By name: how many clients, what the one client sends, and what it cost when every interest was compared
with every other."""


def _attack_row(name: str) -> Row:
    clients, packets, before = ATTACKS[name]
    hall = Hall()
    connections = [hall.connect(f"client-{number}") for number in range(clients)]
    sends = [(one, [_subscribe(1, [f"device/{number}/#"])]) for number, one in enumerate(connections)]
    if clients == 1:
        sends = [(connections[0], packets())]
    start, start_cpu = time.perf_counter(), time.process_time()
    answers = [hall.send(one, each) for one, each in sends]
    home_s, home_cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
    hall.settle()
    return {
        "row": name,
        "covering": True,
        "answered": all(answers),
        "home_s": round(home_s, 3),
        "home_cpu_s": round(home_cpu_s, 3),
        "all_six_cpu_s": round(time.process_time() - start_cpu, 3),
        "before": before,
    }


def run(*, full: bool = False, progress: Progress = lambda _: None) -> list[Row]:
    """Measure all of it; the units are in the columns' names."""
    count = FULL if full else SMALL
    Six(covering=True).subscribe(1, condition_text(1), Spent())  # what is compiled is compiled now
    rows = [
        row for covering in (True, False) for row in _scale_rows(count, covering=covering, progress=progress)
    ]
    rows += _memory_rows(count, progress)
    if find_mosquitto() is not None:
        progress("Mosquitto with the same patterns")
        rows.append(mosquitto_row(count, SAMPLES))
    for name in ATTACKS:
        progress(name)
        rows.append(_attack_row(name))
    return rows
