"""`sojourn learn`: what a trace teaches of where clients go, put where brokers read it.

Brokers read it when they start and when they are told to (`sojourn reload`, SIGHUP); from then on copies of a
subscriber wait only where it is likely to go. With `--follow` a streaming query goes on learning while the
system runs, and brokers of this machine are told whenever something is new.

Example: sojourn learn traces --into building.toml --reload
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from sojourn.cli.following import first_line, interrupts, rest
from sojourn.cli.heartbeat import working
from sojourn.cli.spark_options import Conf, Master, Ship, Ui, session
from sojourn.errors import SojournError, typed
from sojourn.live.brokers.control import ControlError, ask
from sojourn.live.config import Config, load_config
from sojourn.live.learning import write_graph
from sojourn.mobility.learnt_graph import LearntGraph
from sojourn.mobility.prediction import foreseen
from sojourn.pipeline.audit_job import JOB_FAILURES
from sojourn.pipeline.learning import LearningOptions, start_learning
from sojourn.pipeline.learning import learn as learn_all
from sojourn.pipeline.probing import probe
from sojourn.pipeline.tables import open_trace
from sojourn.trace.places import local


class LearnError(SojournError):
    """What was asked for cannot be learnt, or is of no use to the network."""


def learn(  # noqa: PLR0913 - options of the command
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="Directory of a trace; or s3://BUCKET/FOLDER.")
    ],
    into: Annotated[
        Path | None,
        typer.Option(metavar="NETWORK", help="Configuration of the brokers that are to go by it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it here, instead of where those brokers look.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="With --follow: where to keep what was read; TRACE/_learn if left out."),
    ] = None,
    every_s: Annotated[float, typer.Option(help="With --follow: seconds between two looks.")] = 10.0,
    delay_s: Annotated[
        float,
        typer.Option(help="With --follow: how much later than another's a broker may tell a stay, in s."),
    ] = 20.0,
    master: Master = None,
    conf: Conf = None,
    *,
    ui: Ui = False,
    ship: Ship = False,
    reload: Annotated[
        bool, typer.Option("--reload", help="Tell brokers that run on this machine; --follow always does.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on learning until interrupted.")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print a JSON object for all that was learnt, nothing else."),
    ] = False,
) -> None:
    """Learn from a trace where clients go next, and put it where brokers of a network read it.

    Example: sojourn learn traces --into building.toml --reload
    """
    config = load_config(into) if into is not None else None
    target = out or (Path(config.prediction.file) if config is not None and config.prediction.file else None)
    if target is None:
        raise LearnError("--into names the brokers' configuration, or --out a file; one of them is needed.")
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if follow:
        options = LearningOptions(delay_s=delay_s, trigger_s=every_s)
        folder = local(trace, "--follow")
        start = partial(session, master, conf, ui=ui, ship=ship)
        teach = partial(_teach, target=target, config=config, tells=True, as_json=as_json)
        _follow(folder, checkpoint or folder / "_learn", teach, start, options, console)
        return
    found = open_trace(trace, ("sojourns", "runs"))
    for problem in found.problems:
        console.print(f"{problem.run_id}: {problem.sentence}", markup=False)
    with working(console, "learning on Spark"):
        spark = session(master, conf, ui=ui, ship=ship)
        probe(spark, found.root)
        graph = learn_all(spark, found)
    _teach(graph, target=target, config=config, tells=reload, as_json=as_json)
    if config is not None and not reload and not as_json:
        typer.echo(f"Brokers that run read it after `sojourn reload {typed(into)}`.")


def _teach(graph: LearntGraph, *, target: Path, config: Config | None, tells: bool, as_json: bool) -> None:
    """Write what was learnt, unless it is of other brokers; say what it is, and tell brokers that run."""
    names = sorted({name for edge in graph.edges for name in (edge.at, edge.to)})
    known = [broker.name for broker in config.brokers] if config is not None else names
    if not set(names) & set(known):
        raise LearnError(
            f"The trace speaks of {_some(names)} and the network has {_some(known)}: name a trace of its own."
        )
    write_graph(target, graph)
    edges = {frozenset((edge.at, edge.to)) for edge in graph.edges}
    about: dict[str, object] = {
        "file": str(target),
        "moves": sum(edge.crossings for edge in graph.edges),
        "edges": len(edges),
        "brokers": names,
    }
    if config is not None:
        about |= _copies(graph, config, len(edges), len(names))
    said = _tell_brokers(config) if tells and config is not None else []
    if as_json:
        typer.echo(json.dumps({**about, "told": said}))
        return
    typer.echo(
        f"{target}: {about['moves']} moves of clients over {len(edges)} edges between {len(names)} brokers."
    )
    if config is not None:
        typer.echo(
            f"A client that leaves has {about['copies_mean']:.1f} copies on average over {about['paths']} "
            f"paths, for {config.prediction.share:.0%} of where it may go; at all neighbours it has "
            f"{about['neighbours_mean']:.1f}."
        )
    if tells and config is not None:
        for sentence in said or ["No broker of the network runs on this machine."]:
            typer.echo(sentence)


def _copies(graph: LearntGraph, config: Config, edges: int, brokers: int) -> dict[str, object]:
    """How many copies a client that leaves has, as the network's brokers will go by it."""
    chosen = config.prediction
    rows = foreseen(graph, share=chosen.share, order=chosen.order, evidence_min=chosen.evidence_min)
    copies = [len(row.to) for row in rows if row.hour is None]
    return {
        "paths": len(copies),
        "copies_mean": sum(copies) / len(copies),
        "neighbours_mean": 2 * edges / brokers,
    }


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _tell_brokers(config: Config) -> list[str]:
    """Have brokers that run here read it, and return what they say; those elsewhere are others' to tell."""
    said = []
    for broker in config.brokers:
        try:
            said.append(ask(str(config.network.control), broker.name, {"command": "reload"}).said)
        except ControlError as error:
            if not error.is_absent:
                raise
    return said


def _follow(
    trace: Path,
    folder: Path,
    teach: Callable[[LearntGraph], None],
    start: Callable[[], SparkSession],
    options: LearningOptions,
    console: Console,
) -> None:
    with working(console, "starting Spark"):
        spark = start()
    query = start_learning(spark, trace, folder, teach, options)
    with interrupts() as interrupted:
        try:
            while not interrupted.is_set():
                rest(query, options.trigger_s, interrupted)
        except JOB_FAILURES as error:
            raise LearnError(first_line(error)) from error
        finally:
            query.stop()
    console.print(f"Interrupted; the same command goes on where it stopped, by its checkpoint in {folder}.")
