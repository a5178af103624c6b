"""The one door to Numba: the decorators of all kernels, and a bit instruction Numba has no name for.

Kernels are compiled on first use and cached on disk, so that a second start doesn't compile again; where no
folder can be written to, every start compiles them. They release the interpreter lock and trust their
indices, which `layout.py` and the callers guarantee.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba.core import types
from numba.core.options import DefaultOptions
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., object])
Untyped: TypeAlias = Any
"""What Numba and llvmlite give and take where they say no types, or narrower ones than they take."""

_OPTIONS: dict[str, Untyped] = {"nogil": True, "error_model": "numpy"}
# Numba counts references to every array it takes out of a tuple or hands to a helper, with atomic
# instructions that cost ten times the work between them. A kernel that makes no arrays needs none of that.
_UNCOUNTED: dict[str, Untyped] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}

# The ways in from Python and C take longer to compile than most kernels.
_INNER: dict[str, Untyped] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_STAMP = "_source_stamp"
"""Where a cache of Numba's keeps the age of its source; a Numba that keeps it elsewhere is left alone."""
_kernels: list[Untyped] = []


def _compile(function: F, **options: Untyped) -> F:
    try:
        kernel = numba.njit(cache=True, **_OPTIONS, **options)(function)
    except RuntimeError:  # there is no folder to keep it in: a read-only disk, and no home
        kernel = numba.njit(**_OPTIONS, **options)(function)
    _kernels.append(kernel)
    return cast("F", kernel)


def share_freshness() -> None:
    """Let a change in the file of any kernel outdate the cache of all.

    Numba watches only the file of the kernel it loads, but kernels contain those they call and constants from
    other files: after an update, old code would work on arrays laid out anew. Call this when all are defined.
    """
    files = [getattr(getattr(kernel, "_cache", None), "_cache_file", None) for kernel in _kernels]
    stamped = [file for file in files if hasattr(file, _STAMP)]
    stamps = tuple(sorted({getattr(file, _STAMP) for file in stamped}))
    for file in stamped:
        setattr(file, _STAMP, stamps)


def freshness() -> str:
    """What compiled kernels are of: another text means that those that were kept will not do any more."""
    files = [getattr(getattr(kernel, "_cache", None), "_cache_file", None) for kernel in _kernels]
    stamps = sorted({repr(getattr(file, _STAMP, None)) for file in files})
    return f"Numba {numba.__version__} on Python {sys.version}: {stamps}"


def cache_folder() -> str | None:
    """Where compiled kernels are kept; None if they are not, or if this Numba does not say."""
    for kernel in _kernels:
        folder = getattr(getattr(kernel, "stats", None), "cache_path", None)
        if isinstance(folder, str):
            return folder
    return None


def compiled(function: F) -> F:
    """Compile a kernel that may make arrays."""
    return _compile(function)


def borrowing(function: F) -> F:
    """Compile a kernel that only works on arrays it's given and returns plain numbers."""
    return _compile(function, **_UNCOUNTED)


def inner(function: F) -> F:
    """Compile a kernel like `borrowing` does, but for other kernels only: without a way in from Python."""
    return _compile(function, **_UNCOUNTED, **_INNER)


def inlined(function: F) -> F:
    """Compile a small helper that makes no arrays and belongs inside the kernels that call it."""
    return _compile(function, **_UNCOUNTED, **_INNER, forceinline=True)


def _lowest_bit(_typing: Untyped, _word: Untyped) -> Untyped:
    def generate(_context: Untyped, builder: Untyped, _signature: Untyped, arguments: Untyped) -> Untyped:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


lowest_bit: Untyped = intrinsic(_lowest_bit)
"""The position of the lowest set bit of a word that isn't zero."""
