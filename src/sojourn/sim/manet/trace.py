"""The trace of a run over a mobile network, in the tables that all worlds write.

Interests and policies are written as the expressions that the pipeline evaluates itself, so that an audit of
the trace judges deliveries by other code than that which made them.
"""

import numpy as np

from sojourn.adhoc.packets import DATA, KINDS, WHATS
from sojourn.sim.manet.world import World
from sojourn.sim.recorder import Recorder, as_json


def record(world: World, recorder: Recorder, spec_json: str) -> None:
    """Write what a finished run did."""
    manet, names = world.manet, world.topic_names
    recorder.add("runs", "sim", recorder.study, manet.seed, spec_json, None, manet.duration_s, 0.0, None)
    clearances = {int(row["node"]): int(row["clearance"]) for row in world.subscriptions}
    for node in range(manet.nodes):
        recorder.add("clients", f"n{node}", as_json({"clearance": clearances.get(node, 0)}))
    for number, row in enumerate(world.subscriptions):
        wanted = f"topic = '{names[row['topic']]}' AND value >= {float(row['least'])!r}"
        until_s = manet.duration_s / 2 if row["silent"] else None
        recorder.add("interests", f"n{row['node']}", f"i{number}", wanted, 0.0, until_s)
    for event in world.publications:
        recorder.add(
            "publications",
            f"n{event['node']}",
            int(event["event"]),
            float(event["made_s"]),
            f"n{event['node']}",
            names[event["topic"]],
            as_json({"topic": names[event["topic"]], "value": float(event["value"])}),
            f"clearance >= {int(event['clearance'])}",
            int(event["bytes"]),
        )
    given = world.net.delivered_s
    for event_number, number in zip(*np.nonzero(~np.isnan(given)), strict=True):
        source = f"n{world.publications[event_number]['node']}"
        client = f"n{world.subscriptions[number]['node']}"
        time_s = float(given[event_number, number])
        recorder.add("deliveries", client, source, int(event_number), time_s, client)
    sent = world.net.run["sent"][0]
    for kind, what in zip(*sent[:, :, 0].nonzero(), strict=True):
        name = WHATS[what] if kind == DATA else KINDS[kind]
        recorder.add("message_counts", name, "", int(sent[kind, what, 0]), int(sent[kind, what, 1]))
