import re
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

import sojourn
from sojourn.pipeline import schemas
from sojourn.trace import COLUMNS, write_run


def test_the_writer_writes_what_the_schemas_say(tmp_path: Path) -> None:
    """Names, order and types of every file the writer makes are those of the StructTypes."""
    assert set(COLUMNS) == set(schemas.TRACE)
    tables = {table: {name: [None] for name in schema.names} for table, schema in COLUMNS.items()}
    for path in write_run(tmp_path, "r1", tables):
        table = path.parent.parent.name
        written = pq.read_schema(path)
        expected = to_arrow_schema(schemas.file_schema(table), timezone="UTC")
        assert [(f.name, f.type) for f in written] == [(f.name, f.type) for f in expected], table


def test_only_schemas_has_struct_types() -> None:
    """No other module of the package builds a StructType."""
    root = Path(sojourn.__file__).parent
    holders = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"\bStructType\(|\bStructField\(", path.read_text())
    }
    assert holders == {"pipeline/schemas.py"}
