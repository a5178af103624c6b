"""A configuration file with a broker more or less; comments and everything else stay as somebody wrote them.

The text is changed in few places, and read again: if that does not say what it should, nothing is written,
and whoever keeps the file changes it by hand. It is replaced as a whole, so that nobody reads half of one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from sojourn.live.config import BrokerConfig, Config, ConfigError, check_config, read_config

_HEADER = re.compile(r"^\s*\[", re.MULTILINE)
_BROKERS = re.compile(r"^\s*\[\[\s*brokers\s*\]\].*$", re.MULTILINE)
_NETWORK = re.compile(r"^\s*\[\s*network\s*\].*$", re.MULTILINE)


def with_broker(text: str, broker: BrokerConfig, links: Sequence[str], written: Mapping[str, str]) -> str:
    """Return a file with a broker that joins; `written` are the keys of its table with their values."""
    config = read_config(text)
    joined = [*config.network.joined, broker.name]
    wanted = replace(
        config,
        brokers=[*config.brokers, broker],
        links=[*config.links, *((one, broker.name) for one in links)],
        network=replace(config.network, joined=joined),
    )
    check_config(wanted)
    text = _with_links(text, wanted.links)
    text = _with_key(text, "joined", json.dumps(joined, ensure_ascii=False))
    rows = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in written.items())
    text = f"{text.rstrip()}\n\n[[brokers]]\n{rows}"
    return _checked(text, wanted)


def without_broker(text: str, name: str) -> str:
    """Return a file without a broker that has left."""
    config = read_config(text)
    left = config.network.left | {name: sorted(config.neighbours(name))}
    wanted = replace(
        config,
        brokers=[one for one in config.brokers if one.name != name],
        links=[link for link in config.links if name not in link],
        network=replace(config.network, left=left),
    )
    check_config(wanted)
    place = [one.name for one in config.brokers].index(name)
    tables = list(_BROKERS.finditer(text))
    if place >= len(tables):
        raise _by_hand()
    start = tables[place].start()
    following = _HEADER.search(text, tables[place].end())
    end = len(text) if following is None else following.start()
    table = text[start:end].splitlines(keepends=True)
    while len(table) > 1 and table[-1].lstrip()[:1] in ("", "#"):  # comments above what follows stay
        end -= len(table.pop())
    text = text[:start].rstrip("\n") + "\n\n" + text[end:].lstrip("\n")
    text = _with_links(text, wanted.links)
    rows = ", ".join(
        f"{json.dumps(one, ensure_ascii=False)} = {json.dumps(others, ensure_ascii=False)}"
        for one, others in left.items()
    )
    return _checked(_with_key(text, "left", f"{{{rows}}}"), wanted)


def write(path: Path, text: str) -> None:
    """Replace a file, for whoever could read the old one."""
    fresh = path.with_name(f"{path.name}.new")
    mode = path.stat().st_mode & 0o777
    with open(fresh, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        os.fchmod(file.fileno(), mode)  # whatever the process lets others do with what it makes
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _with_links(text: str, links: Sequence[tuple[str, str]]) -> str:
    """Return a text with other links, which stand before the first table."""
    line = f"links = {json.dumps([list(link) for link in links], ensure_ascii=False)}\n"
    head = _HEADER.search(text)
    end = len(text) if head is None else head.start()
    found = re.search(r"^links\s*=\s*", text[:end], re.MULTILINE)
    if found is None:  # a list over several lines begins lines with brackets
        found = re.search(r"^links\s*=\s*", text, re.MULTILINE)
    if found is None:
        return text[:end] + line + "\n" + text[end:]
    return (
        text[: found.start()]
        + line
        + text[_end_of_list(text, found.end()) :].lstrip(" \t").removeprefix("\n")
    )


def _end_of_list(text: str, start: int) -> int:
    """Return where a list of lists of strings ends."""
    depth, is_text = 0, False
    for place in range(start, len(text)):
        letter = text[place]
        if letter == '"':
            is_text = not is_text
        elif not is_text and letter in "[]":
            depth += 1 if letter == "[" else -1
            if depth == 0:
                return place + 1
    raise _by_hand()


def _with_key(text: str, key: str, value: str) -> str:
    """Return a text whose [network] table has a key, on one line."""
    line = f"{key} = {value}\n"
    table = _NETWORK.search(text)
    if table is None:
        first = _HEADER.search(text)
        end = len(text) if first is None else first.start()
        return f"{text[:end]}[network]\n{line}\n{text[end:]}"
    following = _HEADER.search(text, table.end())
    end = len(text) if following is None else following.start()
    found = re.search(rf"^{key}\s*=.*\n?", text[table.end() : end], re.MULTILINE)
    if found is not None:
        return text[: table.end() + found.start()] + line + text[table.end() + found.end() :]
    return text[: table.end()] + "\n" + line + text[table.end() :].removeprefix("\n")


def _checked(text: str, wanted: Config) -> str:
    try:
        found = read_config(text)
    except ConfigError:
        raise _by_hand() from None
    if found != wanted:
        raise _by_hand()
    return text


def _by_hand() -> ConfigError:
    return ConfigError(
        "The file is written in a way that cannot be changed without harm: add or remove the broker's table, "
        "its links, and joined or left in [network] by hand, and run the same command again."
    )
