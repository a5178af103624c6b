"""The radio of a roaming run: sends events to clients, and counts what arrives.

This is the one place that is passed by every delivery of a run, millions of them, which is why it is written
out in one function and asks nobody.
"""

from typing import Any

import numpy as np

from sojourn.sim.links import BITS_A_BYTE
from sojourn.sim.roaming.clients import Client, air_times, retry_delays
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.tally import RoamingTally
from sojourn.sim.servers import Site

MS = 1000.0
_GROWTH = 1024


class Radio:
    """All clients' radio links."""

    def __init__(
        self,
        scenario: RoamingScenario,
        clients: list[Client],
        tally: RoamingTally,
        draw: np.random.Generator,
    ) -> None:
        self._clients = clients
        self._tally = tally
        self._retries = retry_delays(draw, scenario.client_loss, scenario.retry_s)
        self._airs = air_times(draw, scenario.client_duplication)
        drawn = max(len(self._retries), len(self._airs))
        if len(self._retries) < drawn:
            self._retries *= drawn
        if len(self._airs) < drawn:
            self._airs *= drawn
        self._retry = 0
        byte_s = BITS_A_BYTE / scenario.client_bandwidth_bps
        self.delay_s = scenario.client_latency_ms / MS
        self._event_s = scenario.event_bytes * byte_s
        self.control_s = scenario.control_bytes * byte_s + self.delay_s
        """How long a control message takes from a client to its broker."""
        self._begin_s = scenario.warmup_s
        self._end_s = scenario.warmup_s + scenario.duration_s

    def deliver(self, site: Site, clients: tuple[int, ...], publication: Any, now: float) -> None:
        """Send an event to clients; what arrives before a link breaks is consumed."""
        tally, number, retries, airs = self._tally, site.number, self._retries, self._airs
        for at in clients:
            client = self._clients[at]
            if client.link != number:
                tally.into_the_air += 1
                continue
            self._retry = (self._retry + 1) % len(retries)
            sent = max(client.free_s, now) + self._event_s * airs[self._retry]
            client.free_s = sent
            arrival = max(sent + self.delay_s + retries[self._retry], client.arrival_s)
            client.arrival_s = arrival  # what is behind it arrives no sooner, and not at all if it does not
            if arrival >= client.until_s:
                tally.into_the_air += 1
                continue
            self._consume(client, number, publication, arrival)
            if tally.trace is not None:
                tally.trace.delivered(site, client, publication, arrival)

    def _consume(self, client: Client, number: int, publication: Any, arrival: float) -> None:
        """Count one message that arrives at a client."""
        tally, source, sequence = self._tally, publication.publisher, publication.sequence
        if client.requested_s >= 0:
            tally.note_first_message(client, arrival)
        got = client.got[source]
        if sequence >= len(got):
            got.extend(bytes(sequence - len(got) + _GROWTH))
        is_new = not got[sequence]
        got[sequence] = 1
        if self._begin_s <= arrival < self._end_s:
            tally.received += 1
            tally.routed[number] += 1
            tally.duplicates += not is_new
        is_late = sequence <= client.marks[source]
        if not is_late:
            client.marks[source] = sequence
        if publication.counted and publication.time_s >= client.owed_s:
            if is_new:
                tally.unique += 1
                tally.latency_s += arrival - publication.time_s
                tally.late += is_late
                if client.transferred and (number, source, sequence) in client.transferred:
                    tally.transferred += 1
            else:
                tally.doubled += 1
