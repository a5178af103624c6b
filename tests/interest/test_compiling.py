"""Kernels are compiled whether or not there is a place to keep them."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.interest.index import compiling


def test_a_kernel_that_can_be_kept_nowhere_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose disk is read-only: here, a function of no file that Numba could look for."""
    monkeypatch.setattr(compiling, "_kernels", [])
    made: dict[str, Any] = {}
    exec("def add(one, other):\n    return one + other\n", made)  # noqa: S102 - it has no file that way
    kernel = compiling.compiled(made["add"])
    assert kernel(1, 2) == 3
    assert compiling.cache_folder() is None
