"""What a run of the study records: the facts that `measuring.py` computes its measures from.

| table | rows |
|---|---|
| `observations` | by event `due` and `got`, of those `attended` (somebody was near their topic's home) and of those `alone`; by delivery its `delay` in seconds, with the event's number; `paths`, the share of pairs of nodes with a path between them, every ten seconds; `void`, the share of the map without roads near; `stale_s`, the age of the oldest subscription that an event was sent by to somebody who had fallen silent |
| `windows` | packets `sent` by kind (with their bytes) and `lost` by kind and reason; `duplicate`, `unauthorised`, `copy`, `stale_sent`, `frame`, `retried`, `broken`, `collision`; `matched` (with the ages of subscriptions) and `arrived` (with the hops of deliveries); of the measured time |
| `runs` | the run |
"""  # noqa: E501  a table

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from sojourn.adhoc.packets import DATA, KINDS, WHATS
from sojourn.pipeline.sweep import Outcome
from sojourn.sim.manet import state
from sojourn.sim.manet.maps import void_share
from sojourn.sim.manet.trace import record as record_trace
from sojourn.sim.manet.world import Measured, World
from sojourn.sim.recorder import Recorder
from sojourn.studies.manet.runs import HOPS_LOGGED, Run, drawn, path_shares
from sojourn.studies.recorded import from_recorder, from_rows
from sojourn.studies.runner import run_id_of

STUDY = "manet"


def record(spec_json: str) -> Outcome:
    """Carry out the run of a JSON text and record what its measures are made of."""
    run, world, found = _carried_out(spec_json)
    return Outcome(drawn(run, world), found)


def record_traced(spec_json: str) -> Outcome:
    """The same with a whole trace."""
    run, world, found = _carried_out(spec_json)
    recorder = Recorder(run_id_of(spec_json), study=STUDY)
    record_trace(world, recorder, spec_json)
    return Outcome(drawn(run, world), found | from_recorder(recorder))


def _carried_out(spec_json: str) -> tuple[Run, World, dict[str, pa.Table]]:
    run = msgspec.json.decode(spec_json, type=Run)
    world = World(run.manet, hops_logged=HOPS_LOGGED if run.drawn else 0)
    return run, world, facts(world, world.run(), spec_json)


def facts(world: World, measured: Measured, spec_json: str) -> dict[str, pa.Table]:
    """All facts of a run that is over."""
    manet = world.manet
    begin_s, end_s = manet.warmup_s, manet.duration_s
    return from_rows(
        run_id_of(spec_json),
        {
            "windows": [
                (what, of, begin_s, end_s, count, total)
                for what, of, count, total in _counts(world, measured)
            ],
            "observations": list(_observations(world, measured)),
            "runs": [("sim", STUDY, manet.seed, spec_json, None, manet.duration_s, 0.0, None)],
        },
    )


def _counts(world: World, measured: Measured) -> Iterator[tuple[str, str, int, float | None]]:
    run = world.net.run
    sent = run["sent"][0]
    for kind, what in zip(*np.nonzero(sent[:, :, 0]), strict=True):
        name = WHATS[what] if kind == DATA else KINDS[kind]
        yield "sent", name, int(sent[kind, what, 0]), float(sent[kind, what, 1])
    for why, count in measured.lost.items():
        yield "lost", why, count, None
    for what, count in (
        ("duplicate", measured.duplicates),
        ("unauthorised", measured.unauthorised),
        ("copy", measured.copies),
        ("stale_sent", measured.stale_sent),
        ("frame", measured.frames),
        ("retried", measured.retried),
        ("broken", measured.broken),
        ("collision", measured.collisions),
    ):
        yield what, "", count, None
    given = int((~np.isnan(world.net.delivered_s)).sum())
    yield "matched", "", world.number(state.MATCHED), float(run["age_s"][0])
    yield "arrived", "", given, float(world.number(state.HOPS_WALKED))


def _observations(world: World, measured: Measured) -> Iterator[tuple[object, ...]]:
    near = ["attended" if attended else "alone" for attended in measured.attended]
    for at, (of, due, got) in enumerate(zip(near, measured.due, measured.got, strict=True)):
        yield "due", of, at, float(due)
        yield "got", of, at, float(got)
    events = np.repeat(np.arange(len(measured.got)), measured.got)
    for event, delay_s in zip(events, measured.delays_s, strict=True):
        yield "delay", near[event], int(event), float(delay_s)
    for at, share in enumerate(path_shares(world)):
        yield "paths", "", at, share
    yield "void", "", 0, void_share(world.map, world.manet.proximity_m)
    yield "stale_s", "", 0, measured.stale_s
