"""The columns of a trace's files as Arrow types, in the order tables are sealed.

`run_id` is not among them: it is in the path. The order is part of the contract with whoever reads along:
what a delivery is judged by (clients, interests, publications) is sealed before it, and `runs` comes last,
so that a reader who sees the end of a run sees everything of it.
"""

from __future__ import annotations

import pyarrow as pa

_TEXT, _COUNT, _SECONDS = pa.string(), pa.int64(), pa.float64()

COLUMNS: dict[str, pa.Schema] = {
    "clients": pa.schema({"client": _TEXT, "attributes_json": _TEXT}),
    "interests": pa.schema(
        {"client": _TEXT, "interest": _TEXT, "filter": _TEXT, "from_s": _SECONDS, "to_s": _SECONDS}
    ),
    "sojourns": pa.schema({"client": _TEXT, "broker": _TEXT, "from_s": _SECONDS, "to_s": _SECONDS}),
    "publications": pa.schema(
        {
            "source": _TEXT,
            "sequence": _COUNT,
            "time_s": _SECONDS,
            "broker": _TEXT,
            "topic": _TEXT,
            "attributes_json": _TEXT,
            "policy": _TEXT,
            "bytes": _COUNT,
        }
    ),
    "deliveries": pa.schema(
        {"client": _TEXT, "source": _TEXT, "sequence": _COUNT, "time_s": _SECONDS, "broker": _TEXT}
    ),
    "drops": pa.schema(
        {
            "client": _TEXT,
            "source": _TEXT,
            "sequence": _COUNT,
            "time_s": _SECONDS,
            "broker": _TEXT,
            "reason": _TEXT,
        }
    ),
    "handoffs": pa.schema(
        {
            "client": _TEXT,
            "from_broker": _TEXT,
            "to_broker": _TEXT,
            "left_s": _SECONDS,
            "arrived_s": _SECONDS,
            "ready_s": _SECONDS,
            "cause": _TEXT,
        }
    ),
    "messages": pa.schema(
        {
            "time_s": _SECONDS,
            "sender": _TEXT,
            "receiver": _TEXT,
            "kind": _TEXT,
            "bytes": _COUNT,
            "cause": _TEXT,
        }
    ),
    "message_counts": pa.schema({"kind": _TEXT, "cause": _TEXT, "hops": _COUNT, "bytes": _COUNT}),
    "broker_load": pa.schema(
        {
            "broker": _TEXT,
            "handled": _COUNT,
            "busy_s": _SECONDS,
            "queue_max": _COUNT,
            "queue_mean": _SECONDS,
        }
    ),
    "runs": pa.schema(
        {
            "world": _TEXT,
            "study": _TEXT,
            "seed": _COUNT,
            "spec_json": _TEXT,
            "started_at": pa.timestamp("us", tz="UTC"),
            "duration_s": _SECONDS,
            "warmup_s": _SECONDS,
            "error": _TEXT,
        }
    ),
}
