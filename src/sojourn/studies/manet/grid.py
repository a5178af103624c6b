"""The grid of the mobile network study: every run that a figure or claim of paper 004 needs.

An experiment is a scenario, alone or with what is done differently in it; a series is a scheme; x is a speed.
Seed n has the same roads, people, events and topics' names under every scheme.
"""

from typing import Any

from sojourn.sim.manet.scenario import Manet
from sojourn.studies.manet import parameters
from sojourn.studies.manet.parameters import OURS, READINGS, SCENARIOS, SIX, Scale
from sojourn.studies.manet.readings import changes_of
from sojourn.studies.manet.runs import Run
from sojourn.studies.runner import RunSpec, specify

SILENCE = " silence"
"""What stands behind a scenario's name where subscribers fall silent; readings have theirs."""


def grid(scale: Scale, seeds: int | None = None) -> list[RunSpec]:
    """Every run of the study."""
    return [
        spec
        for scenario in SCENARIOS
        for speed in scale.speeds(scenario)
        for seed in range(1, (seeds or scale.seeds) + 1)
        for spec in _at(scale, scenario, speed, seed)
    ]


def _at(scale: Scale, scenario: str, speed: float, seed: int) -> list[RunSpec]:
    def spec(suffix: str, scheme: str, **changes: Any) -> RunSpec:
        given = {**SCENARIOS[scenario], "duration_s": scale.duration_s, "speed_m_s": speed, "seed": seed}
        if scheme == OURS:
            given |= parameters.OURS_CHANGES
        manet = Manet(scheme=scheme, **{**given, **changes})
        return _spec(scenario + suffix, scheme, speed, manet, drawn=_is_drawn(scale, suffix, scheme, manet))

    found = [spec("", scheme) for scheme in (*SIX, OURS)]
    if speed in scale.reading_speeds(scenario):
        found += [
            spec(key, scheme, **changes_of(key, SCENARIOS[scenario]))
            for key, reading in READINGS.items()
            for scheme in reading.schemes
        ]
    if speed == _middle(scale, scenario):
        found += [spec(SILENCE, scheme, silent_share=parameters.SILENT_SHARE) for scheme in (*SIX, OURS)]
    return found


def _middle(scale: Scale, scenario: str) -> float:
    speeds = scale.speeds(scenario)
    return speeds[len(speeds) // 2]


def _is_drawn(scale: Scale, suffix: str, scheme: str, manet: Manet) -> bool:
    scenario = manet.map
    first = manet.seed == 1 and manet.speed_m_s == _middle(scale, scenario)
    return first and not suffix and scheme in (parameters.DRAWN, "b-gpsr")


def _spec(experiment: str, series: str, speed: float, manet: Manet, *, drawn: bool) -> RunSpec:
    # GPSR without a map walks round voids: several times the packets of the others.
    walks = 3.0 if series in ("r-gpsr", "b-gpsr") else 1.0
    return specify(
        Run(manet=manet, drawn=drawn),
        experiment=experiment,
        series=series,
        axis="speed",
        x=speed,
        seed=manet.seed,
        cost=walks * manet.duration_s,
    )
