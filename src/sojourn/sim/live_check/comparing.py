"""Whether two brokers remember the same, told by all that a snapshot would hold of each."""

from __future__ import annotations

from typing import Any

from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.state_codec import dump_state, read_document, rows_of

DIFFERENCES_MAX = 5
_NOT_NOTED = (
    "core.state._aged",
    "core.state._moments",
    "core.state._moments_made",
    "core.state.counters.",
    "core.state.numbered_s",
    "network.clients.broker.subscribers._deliveries.stored",
    "network.clients.broker.subscribers._queues.store.bytes_peak",
    "network.clients.interests_changed",
    "network.clients.timers._heap",
    "network.confirming.",
)
"""Where events of QoS 0, pings and waves leave their traces, which no journal holds, and heaps of moments
that may have passed. The moment of the last number only saves a look at that number, which is compared; for
how many clients the last event was stored is asked at once or never, and how much was stored at the most is a
figure for a page. Whether interests changed since publishers were last told is for whoever tells them, and
that begins anew with all interests after a restart."""
_WAITING = ("._out", ".queued")
"""Of a channel: frames that wait for an acknowledgement. Those are noted now and then, so that a broker which
comes back may have some frames again that its neighbour has; which was the last is compared."""
_UNSURE = {"holding": ("marks", "ceiling", "checks", "behind"), "session": ("last_unsure",)}
"""Of a holding: how far its client has come, events of QoS 0 included, and whether there is a ceiling to be
looked at. Of a session: the publisher's own
number of its last event of QoS 0 (`mqtt/publishing.py` says what follows from that)."""
_COMPARED = {"_acknowledged_to": 0, "_arrived": 0, "_taken": 0, "births": -1, "birth_events": -1}
"""Of a channel: a number that is noted, and a rank of volatile frames that is not; and the number at which
the present life began, and of events by then, but not the lives before it that a hello of the neighbour,
which is not noted, made needless to tell of."""


def differences(one: LiveBroker, other: LiveBroker) -> list[str]:
    """Return the names of what two brokers remember differently, a few of them."""
    parts = [read_document(dump_state(each.core, each.network)) for each in (one, other)]
    mine, yours = (_flat(document) for document in parts)
    names = [name for name in sorted(mine.keys() | yours.keys()) if mine.get(name) != yours.get(name)]
    return [name for name in names if not name.startswith(_NOT_NOTED) and not name.endswith(_WAITING)][
        :DIFFERENCES_MAX
    ]


def _flat(document: dict[str, Any]) -> dict[str, Any]:
    """Return each remembered thing by its name."""
    found: dict[str, Any] = {}
    for path, part in document["parts"].items():
        for name, value in part.items() if isinstance(part, dict) else (("", part),):
            found[f"{path}.{name}"] = value[_COMPARED[name]] if name in _COMPARED else value
    for place, (name, row) in enumerate(rows_of(document)):
        sure = {field: value for field, value in row.items() if field not in _UNSURE.get(name, ())}
        found[f"{name} {place}"] = sure
    return found
