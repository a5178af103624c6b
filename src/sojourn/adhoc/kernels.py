"""How the cores of mobile ad-hoc nodes are compiled: plain functions over arrays, no allocation inside.

A simulated quarter of an hour of sixty nodes is some ten million facts, so these cores are compiled. They
stay what cores are here: state, a fact and the time go in, effects come out; randomness is an argument.

`inner` is for functions that other kernels call, `hot` for those of them that are written into their callers,
`entry` for those that Python calls; only these are kept on disk. Numba watches only the file of the function
it keeps, while an entry contains the code of many files and constants from others: so a kept entry is known
by a digest of all code and constants that it reaches.
"""

import hashlib
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.core.options import DefaultOptions

F = TypeVar("F", bound=Callable[..., object])
Untyped: TypeAlias = Any
"""What Numba gives and takes where it says no types, or narrower ones than it takes."""

_OPTIONS: dict[str, Untyped] = {"nogil": True, "error_model": "numpy"}
# Numba counts references to every array it takes out of a tuple; a kernel that makes no arrays needs none.
if hasattr(DefaultOptions, "_nrt"):
    _OPTIONS["_nrt"] = False

_STAMP = "_source_stamp"
"""Where a cache of Numba's keeps the age of its source; a Numba that keeps it elsewhere is left alone."""

_plain: Untyped = types.unliteral


def _njit(function: F, **options: Untyped) -> Untyped:
    return numba.njit(**_OPTIONS, **options)(function)


def inner(function: F) -> F:
    """Compile a function that is called by kernels only."""
    kernel = _njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    _once_for_all_constants(kernel)
    return cast("F", kernel)


def hot(function: F) -> F:
    """Compile a function into every kernel that calls it.

    A call hands over each array of a network one by one, some two hundred words; for what happens with every
    frame that costs more than the function itself. Short functions the compiler inlines without being told.
    """
    kernel = _njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
    _once_for_all_constants(kernel)
    return cast("F", kernel)


def entry(function: F) -> F:
    """Compile a function that Python calls, and keep it on disk."""
    kernel = _njit(function, cache=True, no_cfunc_wrapper=True)
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if hasattr(file, _STAMP):
        digest = hashlib.sha256()
        _add(digest.update, cast("FunctionType", function), set())
        setattr(file, _STAMP, digest.hexdigest())
    return cast("F", kernel)


def _add(put: Callable[[bytes], None], function: FunctionType, known: set[FunctionType]) -> None:
    """Add a function's code to a digest, the constants it uses, and the functions it calls."""
    if function in known:
        return
    known.add(function)
    code = function.__code__
    constants = [constant for constant in code.co_consts if not hasattr(constant, "co_code")]
    put(repr((function.__qualname__, code.co_code, constants, code.co_names)).encode())
    for name in code.co_names:
        value = function.__globals__.get(name)
        members = code.co_names if isinstance(value, ModuleType) else ()
        for used in (value, *(getattr(value, member, None) for member in members)):
            kernel = getattr(used, "py_func", None)
            if kernel is not None:
                _add(put, kernel, known)
            elif isinstance(used, (int, float, str, tuple, np.generic, np.ndarray)):
                put(f"{name}={used!r}".encode())


def _once_for_all_constants(kernel: Untyped) -> None:
    """Compile a function once for all constants it is called with; Numba would do so for each anew."""
    resolve = kernel.get_call_template

    def without_literals(arguments: tuple[Untyped, ...], keywords: dict[str, Untyped]) -> Untyped:
        plain = tuple(_plain(argument) for argument in arguments)
        return resolve(plain, {name: _plain(kind) for name, kind in keywords.items()})

    kernel.get_call_template = without_literals
