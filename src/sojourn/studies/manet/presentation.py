"""What a person is shown of the study: its figures, the constants behind them, and what we would deploy."""

from functools import partial

from sojourn.sim.manet.scenario import SCHEMES, Manet
from sojourn.studies import base
from sojourn.studies.drawing import Figure
from sojourn.studies.manet import checks, figures, parameters, picture
from sojourn.studies.manet.parameters import FREEWAY, MANHATTAN, OURS, SCENARIOS, WAITS, Scale
from sojourn.studies.manet.table import Table
from sojourn.studies.wording import numbered

Outcome = base.Outcome[Scale, Table]

TITLE = "Publish/subscribe without infrastructure at speed (paper 004)"

FIGURES = (
    *figures.panels("4", FREEWAY),
    *figures.panels("5", MANHATTAN),
    Figure("load-freeway", ("E-load",), partial(figures.composition, scenario=FREEWAY)),
    Figure("load-manhattan", ("E-load",), partial(figures.composition, scenario=MANHATTAN)),
    Figure("proximity-freeway", ("E-proximity",), partial(figures.proximity, scenario=FREEWAY)),
    Figure("proximity-manhattan", ("E-proximity",), partial(figures.proximity, scenario=MANHATTAN)),
    Figure("hello", ("E-load",), partial(figures.hellos, measure="load_bytes_s")),
    *(
        Figure(
            f"waits-{scenario}",
            ("E-delay",),
            partial(figures.read_so, reading=WAITS, measure="delay_ms", scenario=scenario),
        )
        for scenario in SCENARIOS
    ),
    *(
        Figure(
            f"sizes-{scenario}",
            ("E-load",),
            partial(figures.read_so, reading=" sizes", measure="load_bytes_s", scenario=scenario),
        )
        for scenario in SCENARIOS
    ),
    Figure("frames-freeway", ("E-map",), partial(picture.strip, scenario=FREEWAY, scheme="b-gpsr-map")),
    Figure("frames-manhattan", ("E-map",), partial(picture.strip, scenario=MANHATTAN, scheme="b-gpsr-map")),
    Figure("frames-void", ("E-void",), partial(picture.strip, scenario=MANHATTAN, scheme="b-gpsr")),
)


def finding(table: Table) -> str:
    """Which of the paper's six schemes delivers most, and what ours adds."""
    said = []
    for scenario in SCENARIOS:
        shares = {name: table.mean(scenario, name, "delivery_ratio") for name in (*parameters.SIX, OURS)}
        best = max(parameters.SIX, key=lambda name: shares[name])
        worst = min(parameters.SIX, key=lambda name: shares[name])
        said.append(
            f"{scenario}: {SCHEMES[best].title} delivers {shares[best]:.0%} of what is due and "
            f"{SCHEMES[worst].title} {shares[worst]:.0%}; {SCHEMES[OURS].title}, our own, {shares[OURS]:.0%}"
        )
    return f"As means over speeds, {'; '.join(said)}."


def what_is_run(scale: Scale, seeds: int | None) -> str:
    """Half a sentence on how much that is."""
    return f"{numbered('seeds', seeds or scale.seeds)}, {scale.duration_s:g} s per run"


def constants(outcome: Outcome) -> list[tuple[str, str]]:
    """The constants of the study, and what the paper leaves open."""
    scale, manet = outcome.scale, Manet()
    return [
        ("scale", f"{scale.name}: {what_is_run(scale, outcome.seeds)}"),
        ("Table 1", "60 nodes; freeway 2 topics, 1 publisher, 9 subscribers, 512 bytes; city 6, 2, 5, 1,024"),
        ("speed", f"the fastest a vehicle goes; the slowest is {manet.slowest_share:g} of it (ours)"),
        ("maps", _maps(outcome.table)),
        ("radio", "250 m, carrier sense 550 m, 2 Mb/s, CSMA/CA, 7 attempts; no RTS/CTS"),
        (
            "GPSR",
            f"beacons every {manet.beacon_s:g} s ± 50%, Gabriel graph, {manet.ttl} hops (its agent's)",
        ),
        ("AODV", "RFC 3561 with hellos, without local repair"),
        ("soft state", f"{manet.soft_state_s:g} s; advertisements every {manet.advertise_s:g} s (ours)"),
        (
            "content and policy",
            "values from 0 to 1, wanted from a number below 0.5 on; clearances 0, 1, 2 (ours)",
        ),
        ("load", "network-layer bytes of everything handed to the radio, once a hop, retries not counted"),
        ("delay", "from publishing to delivery, of what was delivered"),
        ("what we would deploy", recommendation(outcome)),
    ]


def _maps(table: Table) -> str:
    chosen = (
        "the paper gives no measures: a freeway through 2 km; two avenues by two streets of 1 km in 1.6 km."
    )
    try:
        return chosen + checks.city(table, {})
    except KeyError:
        return chosen


def recommendation(outcome: Outcome) -> str:
    """Ours beside B-GPSR with a map: delivery, load and delay, means over speeds."""
    table = outcome.table
    parts = []
    try:
        for scenario in SCENARIOS:
            numbers = {
                name: tuple(table.mean(scenario, name, measure) for measure in figures.Y_TITLES)
                for name in ("b-gpsr-map", OURS)
            }
            (had, had_delay, had_load), (got, got_delay, got_load) = numbers["b-gpsr-map"], numbers[OURS]
            parts.append(
                f"{scenario}: delivery {got:.3f} instead of {had:.3f}, {got_load:.0f} bytes a node and "
                f"second instead of {had_load:.0f}, mean delay {got_delay / 1000:.2f} s instead of "
                f"{had_delay / 1000:.2f}"
            )
    except KeyError:
        return "not measured"
    better = f"{SCHEMES[OURS].title}, since what is lost is sent again when the next subscription comes"
    return f"{better}; subscriptions every {parameters.OURS_CHANGES['subscribe_s']:g} s. " + "; ".join(parts)
