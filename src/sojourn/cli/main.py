"""The `sojourn` command: finds the sub-command, runs it, and turns errors into one sentence.

Sub-commands are imported only when they are called, so that a quick question about a filter does not wait
for Spark or Plotly. What a user can mend is printed as a sentence with exit code 2, never as a traceback.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from sojourn import __version__
from sojourn.errors import SojournError
from sojourn.interest.syntax import FilterSyntaxError

COMMANDS = {
    "demo": "sojourn.cli.demo:demo",
    "tour": "sojourn.cli.tour:tour",
    "init": "sojourn.cli.init:init",
    "serve": "sojourn.cli.serve:serve",
    "pub": "sojourn.cli.pub:pub",
    "sub": "sojourn.cli.sub:sub",
    "password": "sojourn.cli.password:password",
    "secret": "sojourn.cli.secret:secret",
    "store": "sojourn.cli.store:app",
    "filter": "sojourn.cli.filter:app",
    "simulate": "sojourn.cli.simulate:simulate",
    "tree": "sojourn.cli.tree:tree",
    "reproduce": "sojourn.cli.reproduce:reproduce",
    "check": "sojourn.cli.check:app",
    "audit": "sojourn.cli.audit:audit",
    "plan": "sojourn.cli.plan:plan",
    "bench": "sojourn.cli.bench:bench",
}
"""Each sub-command and where it is: a function, or an app of further sub-commands."""

EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


class _Commands(TyperGroup):
    """A group that imports a sub-command when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  (the base class gives it)
        """Return the names of all sub-commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a sub-command, or None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        found: typer.Typer | Callable[..., Any] = getattr(importlib.import_module(module), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
            alone.command(cmd_name)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:  # noqa: FBT001  (typer calls it so)
    if wanted:
        typer.echo(f"sojourn {__version__}")
        raise typer.Exit


@app.callback()
def sojourn(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
) -> None:
    """Publish/subscribe for clients that move: brokers, simulations, audits and studies.

    Start with [bold]sojourn demo[/bold]; each command explains itself with --help.
    """


def main() -> None:
    """Run the command line."""
    console = Console(stderr=True, highlight=False)
    try:
        app()
    except FilterSyntaxError as error:
        console.print(f"sojourn: {error.sentence}:", markup=False, soft_wrap=True)
        console.print(error.pointer(), markup=False, soft_wrap=True)
        sys.exit(EXIT_REFUSED)
    except SojournError as error:
        console.print(f"sojourn: {error}", markup=False, soft_wrap=True)
        sys.exit(EXIT_REFUSED)
    except KeyboardInterrupt:
        console.print("sojourn: interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; that is its right
        sys.exit(0)


if __name__ == "__main__":
    main()
