"""The reference of the Python interface, from the signatures and docstrings of `sojourn.__all__`."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Any

from words import attribute_words, prose, table

import sojourn

HEAD = """# Python

`import sojourn` is quick: each name is loaded when it is asked for. This page is made from the code.
"""
ORDER = ("Client", "ReplicaClient", "Received", "Filter", "Event", "covers", "intersects", "audit")
"""What people look for first; the rest follows by name."""
WIDTH = 100


def page() -> str:
    """The page."""
    rest = sorted(set(sojourn.__all__) - {*ORDER, "__version__"})
    return "\n".join([HEAD, prose(sojourn.__doc__ or ""), *(_section(name) for name in (*ORDER, *rest))])


def _section(name: str) -> str:
    thing = getattr(sojourn, name)
    if not inspect.isclass(thing):
        return f"## `{name}`\n\n{_call(name, thing)}\n{prose(thing.__doc__ or '')}"
    parts = [f"## `{name}`\n"]
    if not issubclass(thing, BaseException) and thing.__init__ is not object.__init__:
        parts.append(_call(name, thing))
    parts.append(prose(thing.__doc__ or ""))
    if name in ("Client", "ReplicaClient"):  # what holds for all calls stands at the top of their files
        parts.append(prose(sys.modules[thing.__module__].__doc__ or ""))
    parts += [_fields(thing), *(_method(name, key, one) for key, one in methods(thing))]
    return "\n".join(parts)


def methods(kind: type) -> list[tuple[str, Any]]:
    """The public functions and properties of a class that are Sojourn's own, in the order of the code."""
    if issubclass(kind, BaseException):
        return []
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("sojourn."):
            for key, one in vars(base).items():
                if not key.startswith("_") and (
                    inspect.isfunction(one) or isinstance(one, classmethod | staticmethod | property)
                ):
                    found.setdefault(key, one)
    return list(found.items())


def _method(owner: str, name: str, one: Any) -> str:
    if isinstance(one, property):
        return f"### `{owner}.{name}`\n\n{prose(one.__doc__ or '')}"
    function = one.__func__ if isinstance(one, classmethod | staticmethod) else one
    return f"### `{owner}.{name}`\n\n{_call(name, function)}\n{prose(function.__doc__ or '')}"


def _fields(kind: type) -> str:
    words = attribute_words(kind)
    if dataclasses.is_dataclass(kind):
        names = [one.name for one in dataclasses.fields(kind)]
    else:
        names = list(words)
    rows = [(f"`{name}`", words.get(name, "")) for name in names]
    return table(("field", "what it is"), rows) if rows else ""


def _call(name: str, thing: Any) -> str:
    """How something is called; one argument a line where that is long."""
    signature = inspect.signature(thing)
    wait = "await " if inspect.iscoroutinefunction(thing) else ""
    shown = [one for key, one in signature.parameters.items() if key not in ("self", "cls")]
    whole = f"{wait}{name}{signature.replace(parameters=shown)}"
    if len(whole) > WIDTH:
        pieces: list[str] = []
        for one in shown:
            if one.kind is one.KEYWORD_ONLY and "*" not in pieces:
                pieces.append("*")
            pieces.append(str(one))
        arrow = whole.rpartition(") -> ")[2] if ") -> " in whole else ""
        whole = f"{wait}{name}(\n" + "".join(f"    {one},\n" for one in pieces) + ")"
        whole += f" -> {arrow}" if arrow else ""
    return f"```python\n{whole}\n```\n"
