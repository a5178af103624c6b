"""The columns of a trace's files as Arrow types, in the order tables are sealed: what `rows.py` declares."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from sojourn.trace.rows import FACTS, TABLES, Table, columns_of

KINDS: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def _schemas(tables: dict[str, Table]) -> dict[str, pa.Schema]:
    return {
        name: pa.schema([(column.name, KINDS[column.kind]) for column in columns_of(table.row)])
        for name, table in tables.items()
    }


COLUMNS: dict[str, pa.Schema] = _schemas(TABLES)

FACT_COLUMNS: dict[str, pa.Schema] = _schemas(FACTS)
"""Those of what runs of studies record beside a trace's tables."""
