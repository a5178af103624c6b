"""How the cores of mobile ad-hoc nodes are compiled: plain functions over arrays, no allocation inside.

A simulated quarter of an hour of sixty nodes is some ten million facts, so these cores are compiled. They stay
what cores are here: state, a fact and the time go in, effects come out; randomness is an argument.

`inner` is for functions that other kernels call. `entry` is for those that Python calls; only these are kept
on disk. Numba watches only the file of the function it keeps, while an entry contains the code of many files:
so a kept entry is compiled anew when any file that had a kernel before it was defined has changed.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import types
from numba.core.options import DefaultOptions

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Numba counts references to every array it takes out of a tuple; a kernel that makes no arrays needs none of it.
if hasattr(DefaultOptions, "_nrt"):
    _OPTIONS["_nrt"] = False

_STAMP = "_source_stamp"
"""Where a cache of Numba's keeps the age of its source; a Numba that keeps it elsewhere is left alone."""
_stamps: dict[str, Any] = {}


def inner(function: F) -> F:
    """Compile a function that is called by kernels only."""
    _note(numba.njit(cache=True, **_OPTIONS)(function))
    kernel: Any = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
    _once_for_all_constants(kernel)
    return kernel  # type: ignore[no-any-return]


def entry(function: F) -> F:
    """Compile a function that Python calls, and keep it on disk."""
    kernel: Any = numba.njit(cache=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
    file = _note(kernel)
    if file is not None:
        setattr(file, _STAMP, tuple(sorted(_stamps.items())))
    return kernel  # type: ignore[no-any-return]


def _once_for_all_constants(kernel: Any) -> None:
    """Compile a function once for all constants it is called with: Numba would do so for each of them anew."""
    resolve = kernel.get_call_template

    def without_literals(arguments: Any, keywords: Any) -> Any:
        plain = tuple(types.unliteral(argument) for argument in arguments)
        return resolve(plain, {name: types.unliteral(kind) for name, kind in keywords.items()})

    kernel.get_call_template = without_literals


def _note(kernel: Any) -> Any:
    """Remember how old the file of a kernel is, and return what holds that age."""
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if file is None or not hasattr(file, _STAMP):
        return None
    name = kernel.py_func.__module__
    _stamps.setdefault(name, getattr(file, _STAMP))
    return file
