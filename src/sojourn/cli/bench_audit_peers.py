"""The same audit by others: DuckDB, and plain Spark SQL with a join on the expression.

Both get the filters as columns, read out of their texts by regular expressions once, and count the same
things. DuckDB's version is written for it: names become integers through small tables, the key of a delivery
one integer; filters with a kind are hash-joined on the kind, those without on cells of price 50 wide. The
plain Spark version is what one would write first: publications joined with interests on the condition that
the filters express, then deliveries joined by name, and a window for the order.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import typer
from pyspark.sql import SparkSession

from sojourn.pipeline.schemas import TRACE
from sojourn.pipeline.session import spark_session
from sojourn.pipeline.tables import open_trace, read_table

CORES = 2
HEAP_GIB = 1.5

COUNTED = (
    "published",
    "expected",
    "deliveries",
    "lost",
    "duplicated",
    "out_of_order",
    "unauthorised",
    "lost_queue_full",
    "lost_expired",
)
_CELL = 50
_NUMBER = r"([0-9]+)"

_BOUNDS = {
    "kind": ("kind = '([a-z0-9]+)'", "VARCHAR"),
    "price_low": (f"price >= {_NUMBER}", "DOUBLE"),
    "price_high": (f"price < {_NUMBER}", "DOUBLE"),
    "depth_low": (f"depth >= {_NUMBER}", "DOUBLE"),
    "depth_high": (f"depth < {_NUMBER}", "DOUBLE"),
}

_SPARK_TYPES = {"VARCHAR": "STRING", "DOUBLE": "DOUBLE"}

_DUCK_SETUP = """
CREATE TEMP TABLE c AS
  SELECT client, row_number() OVER () - 1 AS cid FROM (SELECT DISTINCT client FROM interests);
CREATE TEMP TABLE s AS
  SELECT source, row_number() OVER () - 1 AS sid FROM (SELECT DISTINCT source FROM publications);
CREATE TEMP TABLE i AS
  SELECT cid, from_s, coalesce(to_s, 'inf'::DOUBLE) AS to_s, {bounds} FROM interests JOIN c USING (client);
CREATE TEMP TABLE p AS
  SELECT sid, sequence, time_s, a.kind AS kind, a.price AS price, a.depth AS depth
  FROM (SELECT source, sequence, time_s,
          from_json(attributes_json, '{{"kind":"VARCHAR","price":"DOUBLE","depth":"DOUBLE"}}') AS a
        FROM publications) JOIN s USING (source);
CREATE TEMP TABLE narrow AS
  SELECT *, unnest(range((price_low // {cell})::BIGINT, (price_high // {cell})::BIGINT + 1)) AS cell
  FROM i WHERE kind = '';
"""

_DUCK_AUDIT = """
WITH e AS (
  SELECT DISTINCT (cid * (SELECT count(*) FROM s) + sid) * 4294967296 + sequence AS k, time_s FROM (
    SELECT cid, sid, sequence, time_s FROM p JOIN i ON p.kind = i.kind
      AND price >= price_low AND price < price_high AND depth >= depth_low AND depth < depth_high
      AND time_s >= from_s AND time_s < to_s
    UNION ALL
    SELECT cid, sid, sequence, time_s FROM p JOIN narrow ON (price // {cell})::BIGINT = cell
      AND price >= price_low AND price < price_high AND depth >= depth_low AND depth < depth_high
      AND time_s >= from_s AND time_s < to_s)),
d AS (
  SELECT (cid * (SELECT count(*) FROM s) + sid) * 4294967296 + sequence AS k, min(time_s) AS t, count(*) AS n
  FROM deliveries JOIN c USING (client) JOIN s USING (source) GROUP BY k),
r AS (
  SELECT (cid * (SELECT count(*) FROM s) + sid) * 4294967296 + sequence AS k, any_value(reason) AS reason
  FROM drops JOIN c USING (client) JOIN s USING (source) GROUP BY k),
j AS (SELECT k, e.time_s AS published, d.t AS t, d.n AS n FROM e FULL JOIN d USING (k)),
o AS (SELECT *, min(t) OVER (PARTITION BY k // 4294967296 ORDER BY k DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) < t AS late FROM j)
SELECT (SELECT count(*) FROM p) AS published,
  count(published) AS expected, sum(n)::BIGINT AS deliveries, count(*) FILTER (n IS NULL) AS lost,
  sum(n - 1)::BIGINT AS duplicated, count(*) FILTER (late) AS out_of_order,
  count(*) FILTER (published IS NULL) AS unauthorised,
  count(*) FILTER (n IS NULL AND reason = 'queue_full') AS lost_queue_full,
  count(*) FILTER (n IS NULL AND reason = 'expired') AS lost_expired,
  approx_quantile(t - published, 0.5) AS latency_p50_s, approx_quantile(t - published, 0.99) AS latency_p99_s
FROM o LEFT JOIN r USING (k)
"""

_SPARK_AUDIT = """
WITH e AS (
  SELECT DISTINCT i.client, p.source, p.sequence, p.time_s AS published
  FROM p JOIN i ON (i.kind = '' OR p.kind = i.kind)
    AND p.price >= i.price_low AND p.price < i.price_high
    AND p.depth >= i.depth_low AND p.depth < i.depth_high
    AND p.time_s >= i.from_s AND (i.to_s IS NULL OR p.time_s < i.to_s)),
d AS (SELECT client, source, sequence, min(time_s) AS t, count(*) AS n FROM deliveries GROUP BY ALL),
r AS (SELECT client, source, sequence, any_value(reason) AS reason FROM drops GROUP BY ALL),
o AS (SELECT *, min(t) OVER (PARTITION BY client, source ORDER BY sequence DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) < t AS late
      FROM e FULL JOIN d USING (client, source, sequence))
SELECT (SELECT count(*) FROM p) AS published,
  count(published) AS expected, sum(n) AS deliveries, count_if(n IS NULL) AS lost,
  sum(n - 1) AS duplicated, count_if(late) AS out_of_order, count_if(published IS NULL) AS unauthorised,
  count_if(n IS NULL AND reason = 'queue_full') AS lost_queue_full,
  count_if(n IS NULL AND reason = 'expired') AS lost_expired,
  percentile_approx(t - published, 0.5) AS latency_p50_s,
  percentile_approx(t - published, 0.99) AS latency_p99_s
FROM o LEFT JOIN r USING (client, source, sequence)
"""


def by_duckdb(root: Path, threads: int, spill: Path) -> dict[str, Any]:
    """Audit a trace with DuckDB, spilling to a directory when its memory doesn't suffice."""
    with duckdb.connect() as connection:
        connection.execute(
            f"SET threads = {threads}; SET memory_limit = '4GB'; SET temp_directory = '{spill}'"
        )
        for table in ("interests", "publications", "deliveries", "drops"):
            files = (root / table / "*" / "*.parquet").as_posix()
            connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM read_parquet('{files}')")  # noqa: S608 - our own names
        bounds = ", ".join(
            f"nullif(regexp_extract(filter, {_quoted(pattern)}, 1), '')::{kind} AS {name}"
            if kind == "DOUBLE"
            else f"regexp_extract(filter, {_quoted(pattern)}, 1) AS {name}"
            for name, (pattern, kind) in _BOUNDS.items()
        )
        connection.execute(_DUCK_SETUP.format(bounds=bounds, cell=_CELL))
        cursor = connection.execute(_DUCK_AUDIT.format(cell=_CELL))
        row = cursor.fetchone()
        assert row is not None
        return dict(zip([column[0] for column in cursor.description], row, strict=True))


def by_plain_spark(spark: SparkSession, root: Path) -> dict[str, Any]:
    """Audit a trace with plain Spark SQL."""
    trace = open_trace(root, TRACE)
    for table in ("deliveries", "drops"):
        read_table(spark, trace, table).createOrReplaceTempView(table)
    attributes = "from_json(attributes_json, 'kind STRING, price DOUBLE, depth DOUBLE')"
    events = read_table(spark, trace, "publications").selectExpr("*", f"{attributes} AS a")
    events.selectExpr("source", "sequence", "time_s", "a.*").createOrReplaceTempView("p")
    bounds = [
        f"CAST(regexp_extract(filter, {_quoted(pattern)}, 1) AS {_SPARK_TYPES[kind]}) AS {name}"
        for name, (pattern, kind) in _BOUNDS.items()
    ]
    interests = read_table(spark, trace, "interests").selectExpr("client", "from_s", "to_s", *bounds)
    interests.createOrReplaceTempView("i")
    return spark.sql(_SPARK_AUDIT).first().asDict()  # type: ignore[union-attr]  # an aggregate has one row


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("'", "''") + "'"


def _peak_bytes() -> int:
    """The most memory of this process; what `getrusage` says begins with that of whoever started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    """Audit a trace as the command line says, WHICH ROOT; print what was found and what it took as JSON."""
    which, root = sys.argv[1], Path(sys.argv[2])
    if which == "plain":
        settings = {"spark.driver.extraJavaOptions": "-Dsojourn=plain"}
        spark = spark_session(f"local[{CORES}]", memory_gib=HEAP_GIB, settings=settings)
        spark.range(10).selectExpr("sum(id)").first()
    started, worked = time.perf_counter(), time.process_time()
    found = by_plain_spark(spark, root) if which == "plain" else by_duckdb(root, CORES, root.parent / "spill")
    took = {
        "seconds": time.perf_counter() - started,
        "processor_s": time.process_time() - worked,
        "peak_bytes": _peak_bytes(),
    }
    typer.echo(json.dumps({**found, **took}))


if __name__ == "__main__":
    main()
