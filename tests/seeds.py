"""Seeds for a property that many seeds are tried for: some in the suite, the rest with `make test-slow`."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, many: int, *, first: int = 0) -> list[Any]:
    """Parameters for `many` seeds from `first` on, of which all but the first `few` are slow tests."""
    assert 0 < few <= many
    return [
        *range(first, first + few),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(first + few, first + many)),
    ]
