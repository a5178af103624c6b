"""The mobile network study: its grid, its claims, and a whole small run of it."""

import msgspec
import pytest

from sojourn.sim.manet.maps import Road, RoadMap, void_share
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.manet.world import World
from sojourn.studies.claims import claims_of
from sojourn.studies.manet.grid import grid
from sojourn.studies.manet.parameters import OURS, READINGS, SCALES, SCENARIOS, SIX, Scale
from sojourn.studies.manet.runs import Run, paths, simulate
from sojourn.studies.manet.study import STUDY
from sojourn.studies.runner import run_grid

TINY = Scale(
    name="tiny", seeds=1, judges=True, duration_s=40.0, freeway_m_s=(10.0, 60.0), manhattan_m_s=(1.0, 20.0)
)


def test_every_claim_has_a_check() -> None:
    """The ledger's claims and the study's checks are the same, in the same order."""
    assert list(STUDY.checks) == list(claims_of("manet"))


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_grid_has_every_scheme_on_the_same_roads(scale: Scale) -> None:
    """Six schemes and ours at every speed and seed; what they share but for the scheme is equal."""
    specs = grid(scale)
    runs = {spec.run_id: msgspec.json.decode(spec.spec_json, type=Run) for spec in specs}
    for scenario in SCENARIOS:
        main = [spec for spec in specs if spec.experiment == scenario]
        assert {spec.series for spec in main} == {*SIX, OURS}
        assert len(main) == 7 * len(scale.speeds(scenario)) * scale.seeds
        for spec in main:
            manet = runs[spec.run_id].manet
            assert manet.scheme == spec.series
            assert (manet.nodes, manet.publish_s) == (60, 10.0)
    table_1 = runs[next(spec.run_id for spec in specs if spec.experiment == "manhattan")].manet
    assert (table_1.topics, table_1.publishers, table_1.subscribers, table_1.event_bytes) == (6, 2, 5, 1024)
    assert (Manet().topics, Manet().publishers, Manet().subscribers, Manet().event_bytes) == (2, 1, 9, 512)


def test_a_tiny_study_judges_every_claim_and_draws_every_figure() -> None:
    """From grid to verdicts and figures; what must hold in any run holds."""
    outcome = STUDY.run(TINY, None, lambda specs: run_grid(specs, simulate, workers=1))
    assert outcome.failed == 0
    verdicts = {verdict.id: verdict for verdict in outcome.verdicts}
    assert all(verdict.verdict in ("holds", "differs") for verdict in verdicts.values())
    assert verdicts["E-policy"].measured["against topic, content or policy"] == 0
    assert verdicts["E-policy"].measured["runs that used one past its time"] == 0
    assert verdicts["E-proximity"].measured["duplicates"] == 0
    for name in ("E-void", "E-map", "E-rendezvous-sensitive", "E-delay", "E-load"):
        assert [reading.name for reading in verdicts[name].readings] == [
            reading.title for reading in READINGS.values()
        ]
        assert verdicts[name].margin is not None
    assert all(verdict.cause for verdict in verdicts.values() if verdict.verdict == "differs")
    assert all(" nan" not in verdict.evidence for verdict in verdicts.values())
    drawn = STUDY.charts(outcome)
    assert len(drawn) == len(STUDY.figures)
    assert dict(STUDY.facts(outcome))["what we would deploy"] != "not measured"


def test_maps_are_mostly_void_and_nearly_everybody_has_a_path() -> None:
    """What the maps were chosen by: over half of each square is void, and 95% of the pairs have a path."""
    for scenario, given in SCENARIOS.items():
        speeds = SCALES["paper"].speeds(scenario)
        shares = []
        for speed in (speeds[0], speeds[-1]):
            world = World(Manet(**given, speed_m_s=speed, duration_s=300.0))
            shares.append(paths(world))
        assert void_share(world.map, Manet().proximity_m) > 0.5
        assert sum(shares) / len(shares) >= 0.95


def test_a_void_is_what_lies_beyond_reach_of_every_road() -> None:
    """One road through the middle of a square leaves all but a band of twice the reach."""
    road_map = RoadMap(
        name="one", area_m=(1000.0, 1000.0), road=[Road(points=[(0.0, 500.0), (1000.0, 500.0)])]
    )
    assert void_share(road_map, 100.0) == pytest.approx(0.8)
