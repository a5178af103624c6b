"""Why deliveries were lost, and where, as far as a trace shows it.

A loss is put down to the reason a broker gave when it dropped the event for this client; else it was *in
flight* when it was published within the last seconds of the run or after its client had left for good; else
it was *never routed*. Its broker is the one that dropped it, else the one where the client was or had last
been. Of several drops of one event for one client the earliest counts. What a gap in the trace can explain is
no loss, but unrecorded at the broker that has the gap (`audit_gaps.py`).

Drops and sojourns lie in the bucket of their client (`audit_chunks.py`), so nothing is joined across buckets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sojourn.pipeline.audit_gaps import Gaps, unrecorded_at, unrecorded_publications
from sojourn.pipeline.audit_kernel import Codes, Outcomes

QUEUE_FULL, EXPIRED, IN_FLIGHT, NEVER_ROUTED, OTHER = (
    "queue_full",
    "expired",
    "in_flight",
    "never_routed",
    "other",
)
REASONS = (QUEUE_FULL, EXPIRED, IN_FLIGHT, NEVER_ROUTED, OTHER)
"""What losses are counted by; a reason that a broker gave in other words is counted as other."""

_NAME = ["run", "client", "source", "sequence"]
_STAY = ["run_id", "client", "broker", "from_s"]


@dataclass(frozen=True, slots=True)
class RunEnds:
    """When runs ended, what counts as the end, and when rows of them are missing."""

    duration_s: Mapping[str, float]
    in_flight_s: float
    missing: Gaps = field(default_factory=dict)


def judged_by(
    outcomes: Outcomes,
    drops: pa.Table | None,
    stays: pa.Table | None,
    known: pa.Table | None,
    ends: RunEnds,
) -> Outcomes:
    """Tell what cannot be known from losses and leaks, and give losses a reason and a broker.

    All tables are of the same bucket; `known` are publications near gaps (`audit_gaps.near_gaps`).
    """
    told = with_reasons(outcomes, drops, stays, ends)
    if not ends.missing:
        return told
    unrecorded = unrecorded_publications(told, known, ends.missing)
    return replace(
        told, is_unrecorded=unrecorded | told.is_unrecorded if len(told.is_unrecorded) else unrecorded
    )


def with_reasons(
    outcomes: Outcomes, drops: pa.Table | None, stays: pa.Table | None, ends: RunEnds
) -> Outcomes:
    """Give the outcomes that are lost a reason and a broker; `drops` and `stays` are of the same bucket."""
    at = np.flatnonzero(outcomes.is_expected & (outcomes.copies == 0))
    if not len(at):
        return outcomes
    lost = pd.DataFrame(
        {
            "run": outcomes.run[at],
            "client": outcomes.client[at],
            "source": outcomes.source[at],
            "sequence": outcomes.sequence[at],
            "published_s": outcomes.published_s[at],
        }
    )
    dropped = _dropped(lost, outcomes, drops)
    been = _been(outcomes, stays)
    was_at = _was_at(lost, been)
    duration = np.array([ends.duration_s.get(run, np.nan) for run in outcomes.runs.to_pylist()])[lost["run"]]
    published = lost["published_s"].to_numpy()
    left = was_at["left_s"].to_numpy()
    over = (published >= duration - ends.in_flight_s) | ((published >= left) & (left < duration))
    plain = np.where(over, IN_FLIGHT, NEVER_ROUTED)
    given = dropped["reason"].to_numpy(object)
    reason = np.where(pd.isna(given), plain, given)
    place = np.where(pd.isna(dropped["broker"]), was_at["broker"], dropped["broker"])
    if not ends.missing:
        return _told(outcomes, at, reason, place)
    gap_at = unrecorded_at(lost.set_axis(at), outcomes, been, ends.missing, ends.in_flight_s)
    unknown = ~pd.isna(gap_at) & pd.isna(given)
    told = _told(outcomes, at, reason, np.where(unknown, gap_at, place))
    told.reason[at[unknown]] = -1
    is_unrecorded = np.zeros(len(outcomes.run), np.bool_)
    is_unrecorded[at[unknown]] = True
    return replace(told, is_unrecorded=is_unrecorded)


def _dropped(lost: pd.DataFrame, outcomes: Outcomes, drops: pa.Table | None) -> pd.DataFrame:
    """Return for each loss the reason and the broker of its earliest drop; missing where there is none."""
    if drops is None or not len(drops):
        return pd.DataFrame({"reason": [None] * len(lost), "broker": [None] * len(lost)}, dtype=object)
    rows = pd.DataFrame(
        {
            "run": _codes(drops, "run_id", outcomes.runs),
            "client": _codes(drops, "client", outcomes.clients),
            "source": _codes(drops, "source", outcomes.sources),
            "sequence": drops.column("sequence").to_numpy(),
            "time_s": drops.column("time_s").to_numpy(),
            "reason": _texts(drops, "reason"),
            "broker": _texts(drops, "broker"),
        }
    )
    first = rows.sort_values(["time_s", "broker", "reason"], kind="stable").drop_duplicates(_NAME)
    return lost[_NAME].merge(first, "left", on=_NAME)


def _been(outcomes: Outcomes, stays: pa.Table | None) -> pd.DataFrame:
    """Return each stay once, in order."""
    if stays is None or not len(stays):
        return pd.DataFrame(columns=["run", "client", "broker", "from_s", "to_s"])
    told = stays.group_by(_STAY).aggregate([("to_s", "max")])  # told at its begin, and again at its end
    rows = pd.DataFrame(
        {
            "run": _codes(told, "run_id", outcomes.runs),
            "client": _codes(told, "client", outcomes.clients),
            "broker": _texts(told, "broker"),
            "from_s": told.column("from_s").to_numpy(),
            "to_s": told.column("to_s_max").to_numpy(),
        }
    ).sort_values(["from_s", "broker", "to_s"], kind="stable", na_position="first")
    return rows[(rows["run"] >= 0) & (rows["client"] >= 0)]


def _was_at(lost: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each loss the broker of its client's latest stay, and when the client left for good."""
    if rows.empty:
        return pd.DataFrame({"broker": [None] * len(lost), "left_s": [np.nan] * len(lost)})
    by_client = rows.groupby(["run", "client"])["to_s"]
    is_away = by_client.count() == by_client.size()
    left = by_client.max().where(is_away).rename("left_s").reset_index()
    order = np.argsort(lost["published_s"].to_numpy(), kind="stable")
    stayed = pd.merge_asof(
        lost.iloc[order][["run", "client", "published_s"]],
        rows[["run", "client", "from_s", "broker"]],
        left_on="published_s",
        right_on="from_s",
        by=["run", "client"],
    )
    broker = np.empty(len(lost), object)
    broker[order] = stayed["broker"].to_numpy(object)
    found = lost[["run", "client"]].merge(left, "left", on=["run", "client"])
    return pd.DataFrame({"broker": broker, "left_s": found["left_s"].to_numpy()})


def _told(
    outcomes: Outcomes, at: npt.NDArray[np.int64], reason: npt.NDArray[np.object_], place: object
) -> Outcomes:
    known = pa.array(np.asarray(place, object), pa.string(), from_pandas=True)
    brokers = pa.concat_arrays([outcomes.brokers.cast(pa.string()), known.drop_null()]).unique()
    old = pc.index_in(outcomes.brokers.cast(pa.string()), brokers).to_numpy(zero_copy_only=False)
    broker: Codes = np.full(len(outcomes.broker), -1, np.int32)
    seen = outcomes.broker >= 0
    broker[seen] = old.astype(np.int32)[outcomes.broker[seen]]
    broker[at] = pc.index_in(known, brokers).fill_null(-1).to_numpy(zero_copy_only=False)
    if known.null_count:  # a null that is a broker's name elsewhere is not the name of this place
        broker[at[known.is_null().to_numpy(zero_copy_only=False)]] = -1
    codes: Codes = np.full(len(outcomes.broker), -1, np.int32)
    reasons, code_of = np.unique(reason.astype(str), return_inverse=True)
    codes[at] = code_of
    return replace(outcomes, broker=broker, brokers=brokers, reason=codes, reasons=pa.array(reasons))


def _codes(table: pa.Table, name: str, names: pa.Array) -> Codes:
    """Return the place of each name among `names`, -1 where it is not there."""
    column = table.column(name)
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    codes: Codes = pc.index_in(column, names.cast(pa.string())).fill_null(-1).to_numpy().astype(np.int32)
    return codes


def _texts(table: pa.Table, name: str) -> npt.NDArray[np.object_]:
    texts: npt.NDArray[np.object_] = table.column(name).to_numpy(zero_copy_only=False).astype(object)
    return texts
