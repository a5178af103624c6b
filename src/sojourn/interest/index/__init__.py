"""An index over filters, to find those of a million that an event matches.

`FilterIndex` is the way in; `layout.py` tells how it is built.
"""

from sojourn.interest.index.bulk import ColumnFilters, ColumnFiltersError
from sojourn.interest.index.columns import ColumnError
from sojourn.interest.index.compiling import share_freshness
from sojourn.interest.index.filter_index import (
    BadKeyError,
    BatchMatches,
    FilterIndex,
    KeyTakenError,
    UnknownKeyError,
)

share_freshness()

__all__ = [
    "BadKeyError",
    "BatchMatches",
    "ColumnError",
    "ColumnFilters",
    "ColumnFiltersError",
    "FilterIndex",
    "KeyTakenError",
    "UnknownKeyError",
]
