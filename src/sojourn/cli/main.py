"""The `sojourn` command: finds the sub-command, runs it, and turns errors into one sentence.

Sub-commands are imported only when they are called (`commands.py`), so that a quick question about a filter
does not wait for Spark or Plotly. What a user can mend is printed as a sentence with exit code 2, never as a
traceback.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sojourn import __version__
from sojourn.cli.commands import Commands
from sojourn.cli.help_texts import spare_markdown
from sojourn.errors import SojournError

EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
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
    if "--help" in sys.argv and "rich.markdown" not in sys.modules:
        spare_markdown()
    try:
        app()
    except SojournError as error:
        refuse(error)
    except KeyboardInterrupt:
        _say("sojourn: interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; that is its right
        sys.exit(0)


def refuse(error: SojournError) -> None:
    """Say what stands in the way, pointing at the place if the error knows it, and end."""
    pointer = getattr(error, "pointer", None)
    if pointer is None:
        _say(f"sojourn: {error}")
    else:
        _say(f"sojourn: {getattr(error, 'sentence', error)}:\n{pointer()}")
    sys.exit(getattr(error, "exit_code", EXIT_REFUSED))


def _say(text: str) -> None:
    typer.echo(text, err=True)


if __name__ == "__main__":
    main()
