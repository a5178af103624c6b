"""Numbers of verdicts carry queries, and SQL gives the same numbers from what the runs recorded."""

import json
import pickle
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline.views import views
from sojourn.studies.adhoc_tree.table import Table as TreeTable
from sojourn.studies.base import runs_table
from sojourn.studies.cited import Cited, queries, total_of
from sojourn.studies.claims import (
    Claim,
    Margin,
    claims_of,
    judge,
    margin_of,
    read_verdicts,
    write_verdicts,
)
from sojourn.studies.means import flat, ratio, tabulate
from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.statistics import straight_line

MEASURE = "wait of p50, it's ms"


def _grid() -> tuple[list[RunSpec], list[Row]]:
    specs, rows = [], []
    for number, (series, x, seed) in enumerate(
        (s, x, n) for s in ("a", "it's") for x in (1, 2) for n in (1, 2, 3)
    ):
        name = f"r{number}"
        spec = RunSpec(
            run_id=name,
            experiment="fig8",
            series=series,
            computations="none",
            axis="x",
            x=float(x),
            seed=seed,
            cost=1.0,
            spec_json="{}",
        )
        specs.append(spec)
        lists = json.dumps({"combo": [x, seed], "nhop": [2 * x + seed]})
        row: Row = {"run_id": name, "seed": seed, "error": None, "values": lists, MEASURE: number * 0.1}
        rows.append(row | ({"error": "broke", MEASURE: None} if number == 4 else {}))
    return specs, rows


def test_numbers_made_of_cited_numbers_are_cited() -> None:
    """Sums, differences, products and quotients say how they are made; everything else is a plain number."""
    one, two = Cited(1.0, "(SELECT 1)"), Cited(2.0, "(SELECT 2)")
    made = (one + two) / two - 3 * one
    assert isinstance(made, Cited)
    assert float(made) == -1.5
    assert made.query == "((((SELECT 1) + (SELECT 2)) / (SELECT 2)) - (3.0D * (SELECT 1)))"
    assert isinstance(turned := abs(-one), Cited)
    assert (float(turned), turned.query) == (1.0, "abs((-(SELECT 1)))")
    assert not isinstance(round(one, 1), Cited)
    assert pickle.loads(pickle.dumps(one)).query == "(SELECT 1)"


def test_verdicts_carry_the_queries_of_their_numbers(tmp_path: Path) -> None:
    """What a check measured is written with its query, and is read back with it."""
    claim = Claim(id="A-x", says="", check="")
    margin = margin_of([1.0, 2.0], 1.0, "it", at=Cited(1.5, "(SELECT 1.5D)"))
    verdict = judge(
        claim, holds=True, measured={"n": Cited(1.5, "(SELECT 1.5D)"), "m": 2.0}, evidence="", margin=margin
    )
    write_verdicts([verdict], tmp_path / "claims.json")
    assert read_verdicts(tmp_path / "claims.json")[0].queries == {"n": "SELECT (SELECT 1.5D) AS value"}


def test_sql_gives_the_numbers_again(spark: SparkSession, tmp_path: Path) -> None:
    """Means over seeds, ratios and fits of them, sums, means of lists: the query gives the number."""
    specs, rows = _grid()
    runs: pd.DataFrame = runs_table(specs, rows)
    runs.to_parquet(tmp_path / "runs.parquet", index=False)
    table = tabulate(specs, rows, [MEASURE])
    lines = {series: table.points("fig8", series, "none", MEASURE) for series in ("a", "it's")}
    cited = flat("a", lines["a"]) | flat("b", lines["it's"])
    cited |= {"ratio": ratio(lines["a"][1.0], lines["it's"][2.0])}
    cited |= flat("tree", TreeTable(specs, rows).ratio_line("fig8", "it's", "nhop"))
    every = [*lines["a"].values(), *lines["it's"].values()]
    cited |= {"fit": straight_line([1.0, 2.0, 3.0, 4.0], every).r2, "size": abs(-every[0])}
    whole = [float(str(row[MEASURE])) for row in rows[:6] if row["error"] is None]
    cited |= {"total": total_of([MEASURE], {"experiment": "fig8", "series": "a"}, sum(whole))}
    asked = queries(cited)
    assert set(asked) == set(cited)
    for name, frame in views(spark, str(tmp_path)).items():
        frame.createOrReplaceTempView(name)
    for name, query in asked.items():
        (row,) = spark.sql(query).collect()
        assert row["value"] == pytest.approx(float(cited[name]), rel=1e-12), query


def test_a_margin_of_cited_numbers_is_written_as_a_number(tmp_path: Path) -> None:
    """Checks may take what decides from the table of means as it is."""
    claim = claims_of("adhoc-tree")["C-fig9"]
    margin = Margin(of="a ratio", value=Cited(0.25, "1"), half=Cited(0.5, "2"))
    write_verdicts([judge(claim, holds=True, measured={}, evidence="", margin=margin)], tmp_path / "c.json")
    (read,) = read_verdicts(tmp_path / "c.json")
    assert read.margin == Margin(of="a ratio", value=0.25, half=0.5)
