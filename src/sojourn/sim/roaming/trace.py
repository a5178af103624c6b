"""Writes the trace of a roaming run, in the tables that live runs write and `sojourn audit` reads."""

from typing import TYPE_CHECKING

import msgspec

from sojourn.routing.effects import Dropped
from sojourn.routing.messages import Kind, Message
from sojourn.sim.recorder import Recorder, as_json, cause_name
from sojourn.sim.roaming.clients import INFINITY, Client
from sojourn.sim.roaming.workload import Publication
from sojourn.sim.servers import Port, Site

if TYPE_CHECKING:
    from sojourn.sim.roaming.publishers import Publisher
    from sojourn.sim.roaming.world import RoamingWorld


class RoamingTrace:
    """The recorder's view of a world."""

    def __init__(self, world: "RoamingWorld") -> None:
        assert world.recorder is not None
        self._world = world
        self._recorder: Recorder = world.recorder
        self._names = world.topology.names
        self._counts: dict[tuple[int, int], list[int]] = {}
        """By cause and kind: hops and bytes."""
        self._moves: dict[int, tuple[int, int, float, float]] = {}
        """By client: the hand-off that is not ready yet, as (from, to, left_s, arrived_s)."""
        for client in world.clients:
            self._recorder.add("clients", client.name, "{}")

    def published(self, publisher: "Publisher", publication: Publication) -> None:
        """An event was sent."""
        self._recorder.add(
            "publications",
            publisher.source,
            publication.sequence,
            publication.time_s,
            self._names[publisher.broker],
            None,
            as_json({"value": publication.value}),
            None,
            self._world.scenario.event_bytes,
        )

    def delivered(self, site: Site, client: Client, publication: Publication, arrival: float) -> None:
        """An event arrived at a client."""
        source = self._world.publishers[publication.publisher].source
        self._recorder.add(
            "deliveries", client.name, source, publication.sequence, arrival, self._names[site.number]
        )

    def dropped(self, site: Site, dropped: Dropped) -> None:
        """A broker gave an event up."""
        publication = dropped.publication
        assert isinstance(publication, Publication)
        self._recorder.add(
            "drops",
            self._world.clients[dropped.client].name,
            self._world.publishers[publication.publisher].source,
            publication.sequence,
            self._world.clock.now,
            self._names[site.number],
            dropped.reason.replace(" ", "_"),
        )

    def hops(self, site: Site, message: Message, ports: tuple[Port, ...], size: int) -> None:
        """A message went to neighbours."""
        counts = self._counts.setdefault((message.cause, message.kind), [0, 0])
        counts[0] += len(ports)
        counts[1] += size * len(ports)
        if self._recorder.messages:
            for receiver, _ in ports:
                self._recorder.add(
                    "messages",
                    self._world.clock.now,
                    self._names[site.number],
                    self._names[receiver.number],
                    Kind(message.kind).name.lower(),
                    size,
                    cause_name(message.cause),
                )

    def left(self, client: Client, broker: int, now: float) -> None:
        """A client's stay ended."""
        self._recorder.add("sojourns", client.name, self._names[broker], client.connected_s, now)

    def moved(self, client: Client, old: int, new: int) -> None:
        """A client asked another broker than before to serve it."""
        self._flush(client, None)
        self._moves[client.number] = (old, new, client.left_s, self._world.clock.now)

    def ready(self, client: Client, now: float) -> None:
        """A client has got everything."""
        self._flush(client, now)

    def _flush(self, client: Client, ready_s: float | None) -> None:
        move = self._moves.pop(client.number, None)
        if move is not None:
            old, new, left_s, arrived_s = move
            self._recorder.add(
                "handoffs",
                client.name,
                self._names[old],
                self._names[new],
                left_s,
                arrived_s,
                ready_s,
                cause_name(2 * client.move),
            )

    def finish(self, loads: list[tuple[float, int, float]]) -> None:
        """What is only known at the end of a run."""
        world, recorder = self._world, self._recorder
        for client in world.clients:
            self._flush(client, None)
            if client.owed_s < INFINITY:
                text = world.workload.texts[client.number]
                asked_s = client.first_asked_s
                recorder.add("interests", client.name, "i0", text, client.owed_s, None, asked_s)
            if client.broker >= 0:
                recorder.add("sojourns", client.name, self._names[client.broker], client.connected_s, None)
        for (cause, kind), (hops, size) in sorted(self._counts.items()):
            recorder.add("message_counts", Kind(kind).name.lower(), cause_name(cause), hops, size)
        for site, (busy_s, queue_max, queue_area) in zip(world.sites, loads, strict=True):
            mean = queue_area / world.scenario.duration_s
            recorder.add("broker_load", self._names[site.number], site.handled, busy_s, queue_max, mean)
        scenario = world.scenario
        spec = msgspec.json.encode(scenario).decode()
        recorder.add(
            "runs", "sim", recorder.study, scenario.seed, spec, None, world.end_s, scenario.warmup_s, None
        )
