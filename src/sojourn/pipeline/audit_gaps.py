"""What cannot be known, since brokers ended without sealing what they had noted (`trace/lives.py`).

In a gap of a broker a delivery may have been made, or an event taken from its publisher, without a row that
says so. Two kinds of outcomes are *unrecorded* instead of lost or unauthorised:

- an expected delivery without a row, if some broker's gap can explain it: the event was published before the
  gap ended; the client is not known to have been at other brokers all the while; and no later event of the
  same source had come to the client before the gap began, as events of one source come in order. Where a
  broker says itself that it gave the event up, it is lost.
- a delivery of an event without a publication row, if a gap of the broker that the source is at can explain
  it: the delivery came after the gap began, and by the numbers of those events of the source that are known,
  this one was published in the gap. An event whose row is there is none of these.

What no gap can explain stays lost or unauthorised. An open writer of a run that goes on may do so too: then
only what was published since its last seal, and what was in flight then, is unrecorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from sojourn.pipeline.audit_kernel import CLOCKS_S, Flags, Floats, Outcomes
from sojourn.trace.lives import Missing

Gaps = Mapping[str, Sequence[Missing]]
"""By run."""

NOTED_LATE_S = 1.0
"""So long it may take until a broker notes what happened: first it has to be safe."""

SOURCE_AT = r"@([^@~]+)~[^@~]*$"
"""Where a source is, in its name: phone@B4~1f0c8a2e."""


def broker_of(source: str | None) -> str | None:
    """Return the broker that a source is at; None where its name does not say."""
    found = re.search(SOURCE_AT, source or "")
    return found[1] if found else None


# -------------------------------------------------------------------------- publications


def near_gaps(publications: pa.Table, gaps: Sequence[Missing]) -> pa.Table:
    """Keep of a run's publications what tells which others were published in a gap, and which were not.

    These are, of sources at a broker with gaps, those in a gap, the last one before it and the first after.
    """
    sources = publications.column("source").combine_chunks().dictionary_encode()
    codes = sources.indices.to_numpy()
    times = publications.column("time_s").to_numpy()
    numbers = publications.column("sequence").to_numpy()
    kept = np.zeros(len(publications), np.bool_)
    for code, source in enumerate(sources.dictionary.to_pylist()):
        at = broker_of(source)
        near = [gap for gap in gaps if gap.broker == at]
        if not near:
            continue
        mine = np.flatnonzero(codes == code)
        for gap in near:
            before, after = _beside(times[mine], gap)
            kept[mine[~before & ~after]] = True
            if before.any():
                kept[mine[before][numbers[mine[before]].argmax()]] = True
            if after.any():
                kept[mine[after][numbers[mine[after]].argmin()]] = True
    return publications.filter(pa.array(kept))


def _beside(times: Floats, gap: Missing) -> tuple[Flags, Flags]:
    """Return which times are surely before a gap, and which are surely after it."""
    return times < gap.from_s - NOTED_LATE_S, times > gap.to_s + CLOCKS_S


def unrecorded_publications(outcomes: Outcomes, known: pa.Table | None, gaps: Gaps) -> Flags:
    """Return which deliveries are of events whose publication row a gap may have taken.

    `known` has all rows that `near_gaps` kept: run_id, source, sequence, time_s.
    """
    found = np.zeros(len(outcomes.run), np.bool_)
    at = np.flatnonzero(~outcomes.is_wanted & (outcomes.copies > 0)) if gaps else np.empty(0, np.int64)
    if not len(at):
        return found
    runs, sources = outcomes.runs.to_pylist(), outcomes.sources.to_pylist()
    told = _known(known)
    names = pd.DataFrame({"run": outcomes.run[at], "source": outcomes.source[at], "at": at})
    for (run, source), group in names.groupby(["run", "source"]):
        broker = broker_of(sources[source])
        rows = group["at"].to_numpy()
        numbers, first_s = outcomes.sequence[rows], outcomes.first_s[rows]
        there, times = told.get((runs[run], sources[source]), (np.empty(0, np.int64), np.empty(0)))
        explained = np.zeros(len(rows), np.bool_)
        for gap in gaps.get(runs[run], ()):
            if gap.broker != broker:
                continue
            before, after = _beside(times, gap)
            explained |= (
                (first_s >= gap.from_s - NOTED_LATE_S)
                & (numbers > there[before].max(initial=np.iinfo(np.int64).min))
                & (numbers < there[after].min(initial=np.iinfo(np.int64).max))
            )
        found[rows] = explained & ~np.isin(numbers, there)
    return found


def _known(
    known: pa.Table | None,
) -> dict[tuple[str, str], tuple[npt.NDArray[np.int64], Floats]]:
    if known is None or not len(known):
        return {}
    rows = pd.DataFrame({name: known.column(name).to_pandas() for name in known.column_names})
    return {
        (str(run), str(source)): (group["sequence"].to_numpy(), group["time_s"].to_numpy())
        for (run, source), group in rows.astype({"run_id": str, "source": str}).groupby(["run_id", "source"])
    }


# -------------------------------------------------------------------------- deliveries


def unrecorded_at(
    lost: pd.DataFrame, outcomes: Outcomes, stays: pd.DataFrame, gaps: Gaps, in_flight_s: float
) -> npt.NDArray[np.object_]:
    """Return for each missing delivery the broker in whose gap it may have been made; None if in no gap.

    `lost` has a row for each, by the place of the name; `stays` tells where clients were, in order.
    """
    explained = np.full(len(lost), None, object)
    runs = outcomes.runs.to_pylist()
    later_s = _later_s(outcomes)[lost.index.to_numpy()]
    published_s = lost["published_s"].to_numpy()
    been: dict[Any, list[tuple[str | None, float, float]]] = {
        name: list(_been(group)) for name, group in stays.groupby(["run", "client"])
    }
    for (run, client), rows in lost.reset_index(drop=True).groupby(["run", "client"]):
        group = rows.index.to_numpy()
        for gap in gaps.get(runs[run], ()):
            last_s = _last_elsewhere_not(been.get((run, client), []), gap)
            when = published_s[group]
            may = (when <= last_s + CLOCKS_S) & (later_s[group] >= gap.from_s - NOTED_LATE_S)
            if gap.may_go_on:
                may &= when >= gap.from_s - in_flight_s
            fresh = group[may & (explained[group] == None)]  # noqa: E711 - of each element
            explained[fresh] = gap.broker
    return explained


def _later_s(outcomes: Outcomes) -> Floats:
    """Return for each name when a later event of its source first came to its client; infinite if never."""
    names = pd.DataFrame(
        {
            "run": outcomes.run,
            "client": outcomes.client,
            "source": outcomes.source,
            "first_s": outcomes.first_s,
        }
    )
    # Names are sorted by sequence within their source: from behind, the least so far is of all later ones.
    by_pair = ["run", "client", "source"]
    backward = names.iloc[::-1].fillna({"first_s": np.inf})
    least = backward.groupby(by_pair)["first_s"].cummin()
    later = backward.assign(least=least).groupby(by_pair)["least"].shift(1, fill_value=np.inf)
    return later.iloc[::-1].to_numpy()


def _been(stays: pd.DataFrame) -> Iterator[tuple[str | None, float, float]]:
    """Yield where a client was from when to when; a stay of which no end was told lasts until the next."""
    rows = list(zip(stays["broker"], stays["from_s"], stays["to_s"], strict=True))
    for place, (broker, from_s, to_s) in enumerate(rows):
        following = rows[place + 1][1] if place + 1 < len(rows) else np.inf
        yield broker, from_s, following if np.isnan(to_s) else to_s


def _last_elsewhere_not(been: Sequence[tuple[str | None, float, float]], gap: Missing) -> float:
    """Return the last moment of a gap at which the client is not known to have been at another broker.

    Before all times if it was elsewhere for the whole of it; changing brokers takes no time here.
    """
    last_s = gap.to_s
    for broker, from_s, to_s in sorted(been, key=lambda stay: -stay[2]):
        if broker != gap.broker and from_s < last_s <= to_s + CLOCKS_S:
            last_s = from_s
    return last_s if last_s > gap.from_s else -np.inf
