"""The study's runs with their traces, for `sojourn reproduce handoff --trace` and whoever audits them."""

import msgspec

from sojourn.pipeline.sweep import Outcome
from sojourn.sim.recorder import Recorder
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.studies.handoff.grid import run_id_of
from sojourn.studies.handoff.measures import measure
from sojourn.studies.publisher_mobility.traced import trace_table


def simulate_traced(spec_json: str) -> Outcome:
    """Run the scenario of a JSON text, measure it, and return all that it recorded."""
    scenario = msgspec.json.decode(spec_json, type=RoamingScenario)
    recorder = Recorder(run_id_of(spec_json), study="handoff")
    result = RoamingWorld(scenario, recorder=recorder).run()
    tables = {name: trace_table(name, columns) for name, columns in recorder.tables.items()}
    return Outcome(measure(result, scenario), {name: rows for name, rows in tables.items() if rows.num_rows})
