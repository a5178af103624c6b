"""An index over filters, to find those of a million that an event matches.

`FilterIndex` is the way in; `layout.py` tells how it is built.
"""

from sojourn.errors import missing_extra

try:
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
except ModuleNotFoundError as error:
    raise missing_extra(error, "sojourn.interest.index", "index") from None

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
