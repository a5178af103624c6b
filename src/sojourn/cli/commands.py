"""All sub-commands: where each is, what it is for, and which extra of the package it needs.

They are imported when they are called, and not to be listed: `sojourn --help` knows their first sentences
from here, and `tests/cli/test_commands.py` holds these to what each command says of itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from sojourn.cli.help_texts import mean_brackets, tidy, untyped_switch
from sojourn.errors import MissingExtraError, missing_extra


class Command(NamedTuple):
    """One sub-command."""

    where: str
    """MODULE:NAME of a function, or of an app of further sub-commands."""
    summary: str
    extra: str | None = None
    """What is to be installed besides the client and the broker."""


COMMANDS = {
    "demo": Command(
        "sojourn.cli.demo:demo",
        "Let phones move between six live brokers, and audit what each of them got.",
        "demo",
    ),
    "tour": Command(
        "sojourn.cli.tour:tour",
        "Show the system at work: matching by content, a large index, and moving publishers.",
        "demo",
    ),
    "init": Command(
        "sojourn.cli.init:init",
        "Write a commented configuration of brokers, and beside it the secret by which they know one "
        "another.",
    ),
    "serve": Command(
        "sojourn.cli.serve:serve",
        "Run a broker that any MQTT client can use, of version 3.1.1 or 5, until it is interrupted.",
    ),
    "adhoc": Command(
        "sojourn.cli.adhoc:adhoc",
        "Meet other devices where there is no broker: elect one, share events, join the fixed network.",
    ),
    "pub": Command(
        "sojourn.cli.pub:pub",
        "Publish an event, and return when the broker has promised to keep it (QoS 1 and 2).",
    ),
    "sub": Command("sojourn.cli.sub:sub", "Print the events that match a filter, until Ctrl-C."),
    "doctor": Command(
        "sojourn.cli.doctor:doctor",
        "Look at what Sojourn needs on this machine: Python, Java, ports, kernels, extras and the clock.",
    ),
    "password": Command(
        "sojourn.cli.password:password",
        "Ask for a password and print what belongs into a [[users]] table.",
    ),
    "secret": Command(
        "sojourn.cli.secret:secret",
        "Write a fresh secret into a file that only you can read.",
    ),
    "reload": Command(
        "sojourn.cli.operate:reload",
        "Let running brokers read users, permissions, tokens, certificates and what was learnt anew.",
    ),
    "join": Command(
        "sojourn.cli.join:join",
        "Add a broker to a network that runs; the others, and their clients, go on.",
    ),
    "leave": Command(
        "sojourn.cli.leave:leave",
        "Take a broker out of a network that runs: its sessions go to its neighbour, then it stops.",
    ),
    "kick": Command(
        "sojourn.cli.operate:kick",
        "End the connection of a client, at whichever broker of the network it is; it may come back.",
    ),
    "ban": Command(
        "sojourn.cli.operate:ban",
        "Let a client, a user or an address come in no more, at any broker of the network.",
    ),
    "unban": Command("sojourn.cli.operate:unban", "Let somebody who was banned come in again."),
    "bans": Command("sojourn.cli.operate:bans", "Print who is banned."),
    "store": Command(
        "sojourn.cli.store:app",
        "Look at a broker's store, mend it, or write out what is in it; the broker must not be running.",
    ),
    "filter": Command(
        "sojourn.cli.filter:app", "Explain filters, the SQL conditions that subscriptions are written in."
    ),
    "simulate": Command(
        "sojourn.cli.simulate:app",
        "Run one scenario of moving publishers, roaming subscribers or a mobile network; show what it cost.",
        "studies",
    ),
    "tree": Command(
        "sojourn.cli.tree:tree",
        "Build the publish/subscribe tree of a layout, print its overhead and compare it with the optimum.",
        "studies",
    ),
    "reproduce": Command(
        "sojourn.cli.reproduce:reproduce",
        "Measure every claim of a study and write figures, verdicts and report.html.",
        "studies",
    ),
    "check": Command("sojourn.cli.check:app", "Check that protocols keep their promises, over many seeds."),
    "audit": Command(
        "sojourn.cli.audit:audit",
        "Compare what was delivered with what should have been, for every run of a trace.",
        "spark",
    ),
    "tables": Command(
        "sojourn.cli.tables:tables",
        "Explain the tables of a trace, or make those that follow from one.",
        "spark",
    ),
    "sql": Command(
        "sojourn.cli.sql:sql",
        "Ask a trace, the tables made from one, or a study's results a question in SQL.",
        "spark",
    ),
    "compact": Command(
        "sojourn.cli.compact:compact",
        "Write a trace of many small segments again as few large ones, one per table and run.",
        "spark",
    ),
    "plan": Command(
        "sojourn.cli.plan:plan",
        "Tell how many brokers K subscribers need at a mobility and rate, from a measured run.",
        "spark",
    ),
    "learn": Command(
        "sojourn.cli.learn:learn",
        "Learn from a trace where clients go next, and put it where brokers of a network read it.",
        "spark",
    ),
    "bench": Command(
        "sojourn.cli.bench:bench",
        "Measure how fast the system is on this machine, beside peers in the same run.",
        "bench",
    ),
}


class Commands(TyperGroup):
    """A group that knows its sub-commands by name, and imports one when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  (the base class gives it)
        """Return the names of all sub-commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the base class gives it
        """Return what stands for a sub-command, or None when there is none of that name."""
        return _Unread(cmd_name, COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, switches without a type."""
        return [untyped_switch(one) for one in super().get_params(ctx)]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the sub-command; say which there are like it, if it is none."""
        if not self.commands:  # where the base class looks for names like the one that was given
            self.commands.update({name: _Unread(name, command) for name, command in COMMANDS.items()})
        return super().resolve_command(ctx, args)


class _Unread(TyperCommand):
    """Stands for a sub-command in lists; becomes the true one when it is called."""

    def __init__(self, name: str, command: Command) -> None:
        super().__init__(name, help=mean_brackets(command.summary), rich_markup_mode="rich")

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Begin the true command; where it lacks a library and is asked for help, say what is known of it."""
        assert self.name is not None
        try:
            true = load(self.name)
        except MissingExtraError as error:
            if "--help" not in args:
                raise
            self.epilog = mean_brackets(f"{error} (its options are listed then).")
            return super().make_context(info_name, args, parent, **extra)
        return true.make_context(info_name, args, parent, **extra)


def load(name: str) -> Any:
    """Import a sub-command; now and when it runs, say what to install where a library is missing."""
    with _extra_named(name):
        module, attribute = COMMANDS[name].where.split(":")
        found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
        alone.command(name)(found)
        found = alone
    command: Any = typer.main.get_command(found)
    command.name = name
    tidy(command)
    command.invoke = _extra_named(name)(command.invoke)
    return command


@contextmanager
def _extra_named(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_extra(error, f"sojourn {name}", COMMANDS[name].extra) from None
