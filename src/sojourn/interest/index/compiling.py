"""The one door to Numba: the decorator of all kernels, and two bit instructions Numba has no name for.

Kernels are compiled on first use and cached on disk, so that a second start doesn't compile again. They
release the interpreter lock and trust their indices, which `layout.py` and the callers guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a kernel on first use, cached on disk, without the interpreter lock."""
    kernel: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return kernel


def inlined(function: F) -> F:
    """Compile a helper that LLVM should inline into every kernel that calls it."""
    kernel: F = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)
    return kernel


def _lowest_bit(_typing: Any, word: Any) -> Any:  # noqa: ANN401
    """Return the position of the lowest set bit of a word that isn't zero."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _bit_count(_typing: Any, word: Any) -> Any:  # noqa: ANN401
    """Return how many bits of a word are set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


lowest_bit: Callable[[Any], int] = intrinsic(_lowest_bit)
bit_count: Callable[[Any], int] = intrinsic(_bit_count)
