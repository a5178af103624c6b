"""Makes what `--help` prints of a command fit to be read: brackets, paragraphs and switches.

Help texts are written as docstrings and options' sentences. Rich takes `[[users]]` for a colour and keeps the
line ends of the source, and Typer gives a switch a type, as though it wanted a value.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from types import ModuleType
from typing import Any

_OPENS = re.compile(r"\[(?!/?bold\])")
"""A bracket that is meant, and does not begin one of the few marks that help texts have."""


def spare_markdown() -> None:
    """Load what prints help without a reader of Markdown, which it asks for and our help never uses.

    That reader and its parser take a third of the time in which `sojourn --help` answers.
    """
    unused = ModuleType("rich.markdown")
    unused.Markdown = type("Markdown", (), {})  # type: ignore[attr-defined]  # all that is asked for
    sys.modules["rich.markdown"] = unused
    try:
        importlib.import_module("typer.rich_utils")
    finally:
        del sys.modules["rich.markdown"]


def mean_brackets(text: str) -> str:
    """Have [[users]] in a help text printed, where Rich would look for a colour of that name."""
    return _OPENS.sub(r"\\[", text)


def tidy(command: Any) -> None:
    """Mend the help of a command, of its options and of every command below it."""
    if command.help:
        command.help = mean_brackets(_filled(command.help))
    for one in command.params:
        if getattr(one, "help", None):
            one.help = mean_brackets(one.help)
        untyped_switch(one)
    made = command.get_help_option
    command.get_help_option = lambda ctx: untyped_switch(made(ctx))
    for inner in getattr(command, "commands", {}).values():
        tidy(inner)


def _filled(text: str) -> str:
    """Every paragraph on one line, so that it is broken where the reader's window ends."""
    return "\n\n".join(
        paragraph if paragraph.startswith("\b") else " ".join(paragraph.split("\n"))
        for paragraph in inspect.cleandoc(text).split("\n\n")
    )


def untyped_switch(option: Any) -> Any:
    """Show no type beside an option that takes no value."""
    if getattr(option, "is_flag", False) and option.metavar is None:
        option.metavar = ""
    return option
