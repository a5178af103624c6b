"""What an audit says of runs that look wrong, a sentence each."""

from __future__ import annotations

from typing import Any

from sojourn.pipeline.audit_events import is_readable
from sojourn.pipeline.audit_kernel import CLOCKS_S
from sojourn.pipeline.tables import Problem, Trace, small_table

Rows = list[dict[str, Any]]

_NAMED_MAX = 3


def said(runs: Rows, faulty_events: dict[str, int], unreadable: Rows, unknown: Rows) -> list[Problem]:
    """Return the sentences for what was audited and yet looks wrong."""
    problems = []
    for run in runs:
        if run["error"]:
            problems.append(Problem(run["run_id"], f"the run itself failed: {run['error']}", refused=False))
        if sentence := of_clocks(run):
            problems.append(Problem(run["run_id"], sentence, refused=False))
        if faulty_events.get(run["run_id"]):
            problems.append(
                Problem(
                    run["run_id"],
                    f"the attributes of {faulty_events[run['run_id']]} publications cannot be read; they "
                    "count as events without attributes.",
                    refused=False,
                )
            )
    for run_id, names in _by_run(unknown, "client").items():
        problems.append(
            Problem(
                run_id,
                f"deliveries name {_some(names, 'client')} that neither clients nor interests have; they "
                "count as unauthorised.",
                refused=False,
            )
        )
    problems += [
        Problem(
            row["run_id"],
            f"the {row['what']} {row['filter']!r} cannot be read and "
            f"{'matches nothing' if row['what'] == 'filter' else 'permits nobody'}: {row['error']}",
            refused=False,
        )
        for row in unreadable
    ]
    return problems


def of_clocks(run: dict[str, Any]) -> str:
    """Say that clocks of a run's brokers differ, or that one jumped; nothing if nothing shows it."""
    jumps, before, most_s = (
        run[name] or 0 for name in ("clock_jumps", "before_published", "before_published_max_s")
    )
    if jumps or most_s > CLOCKS_S:
        by = f", by up to {most_s:.3g} s" if before else ""
        return (
            f"a clock jumped back: publications older than the one before them: {jumps}; deliveries older "
            f"than their publication: {before}{by}; latencies leave out those of more than {CLOCKS_S:g} s, "
            "and take others for 0."
        )
    if before:
        return (
            f"clocks of brokers differ by at least {1000 * most_s:.3g} ms: deliveries older than their "
            f"publication: {before}; latencies take those for 0."
        )
    return ""


def _by_run(rows: Rows, column: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["run_id"], []).append(row[column])
    return found


def _some(names: list[str], what: str) -> str:
    shown = ", ".join(repr(name) for name in sorted(names)[:_NAMED_MAX])
    more = len(names) - _NAMED_MAX
    return f"the {what}{'s'[: len(names) > 1]} {shown}" + (f" and {more} more" if more > 0 else "")


def unreadable_clients(trace: Trace) -> list[Problem]:
    """Return a sentence for each run some of whose clients have attributes that policies cannot read."""
    clients = small_table(trace, "clients", ("run_id", "client", "attributes_json")).to_pylist()
    wrong = [row for row in clients if not is_readable(row["attributes_json"])]
    return [
        Problem(
            run_id,
            f"the attributes of {_some(names, 'client')} cannot be read; policies see none.",
            refused=False,
        )
        for run_id, names in _by_run(wrong, "client").items()
    ]


def cannot(error: Exception) -> str:
    """Return why Spark gave a run up, as far as one line tells."""
    told = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"Spark cannot read it ({told[0][:160] if told else type(error).__name__}); restore its files."
