"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from words import cell

from sojourn.cli.commands import COMMANDS, load

HEAD = """# Command line

Every command explains itself with `--help`; this page is made from the same words. What a user can mend
is one sentence on standard error and exit code 2. `sojourn --install-completion` lets your shell complete
commands and options.
"""


def page() -> str:
    """The page."""
    parts = [HEAD]
    for name, command in COMMANDS.items():
        extra = f"Needs the extra `[{command.extra}]`.\n" if command.extra else ""
        for words, found in all_commands(name, load(name)):
            parts.append(_section(words, found, extra))
    return "\n".join(parts)


def all_commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and those below it, with what is typed to call them."""
    yield name, command
    for below, inner in getattr(command, "commands", {}).items():
        yield from all_commands(f"{name} {below}", inner)


def _section(words: str, command: Any, extra: str) -> str:
    depth = "##" + "#" * words.count(" ")
    parts = [f"{depth} `sojourn {words}`\n", _text(command.help or ""), extra]
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    if shown:
        parts += ["| option | default | what it is |", "| --- | --- | --- |"]
        parts += [_row(one) for one in shown]
        parts.append("")
    return "\n".join(parts)


def _row(one: Any) -> str:
    if one.param_type_name == "argument":
        name = (one.metavar or one.name.upper()).strip("[]")
        spelled = f"`{name}`" + ("" if one.required else " (may be left out)")
    else:
        spelled = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    return f"| {spelled} | {_default(one.default)} | {cell(_text(one.help or ''))} |"


def _default(value: Any) -> str:
    if value is None or callable(value) or value is False or value in ("", ()):
        return ""
    return f"`{cell(str(value.value if isinstance(value, Enum) else value))}`"


def _text(text: str) -> str:
    """Help without the marks that colour it in a terminal."""
    plain = re.sub(r"\[/?bold\]", "`", text).replace("\\[", "[").replace("\b", "")
    # A word in angle brackets would be taken for HTML, and stars for emphasis.
    return plain.replace("<", "&lt;").replace("*", "\\*") + "\n"
