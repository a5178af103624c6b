"""The one door to Numba: the decorators of all kernels, and a bit instruction Numba has no name for.

Kernels are compiled on first use and cached on disk, so that a second start doesn't compile again. They
release the interpreter lock and trust their indices, which `layout.py` and the callers guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.options import DefaultOptions
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Numba counts references to every array it takes out of a tuple or hands to a helper, with atomic
# instructions that cost ten times the work between them. A kernel that makes no arrays needs none of that.
_UNCOUNTED: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def compiled(function: F) -> F:
    """Compile a kernel that may make arrays."""
    kernel: Any = numba.njit(**_OPTIONS)(function)
    return kernel  # type: ignore[no-any-return]


def borrowing(function: F) -> F:
    """Compile a kernel that only works on arrays it's given and returns plain numbers."""
    kernel: Any = numba.njit(**_OPTIONS, **_UNCOUNTED)(function)
    return kernel  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Compile a small helper that makes no arrays and belongs inside the kernels that call it."""
    kernel: Any = numba.njit(**_OPTIONS, **_UNCOUNTED, forceinline=True)(function)
    return kernel  # type: ignore[no-any-return]


def _lowest_bit(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


lowest_bit: Any = intrinsic(_lowest_bit)
"""The position of the lowest set bit of a word that isn't zero."""
