"""Numbers of verdicts carry queries, and SQL gives the same numbers from what the runs recorded."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline.views import views
from sojourn.studies.adhoc_tree.checks import single_layouts
from sojourn.studies.adhoc_tree.differences import Hops, seconds_by
from sojourn.studies.adhoc_tree.table import Table as TreeTable
from sojourn.studies.adhoc_tree.trials import moves
from sojourn.studies.architectures.quenching import break_even
from sojourn.studies.base import runs_table
from sojourn.studies.cited import PRINTED, Cited, Told, queries, stated, total_of, whole
from sojourn.studies.cited_points import widest_of
from sojourn.studies.claims import (
    Claim,
    Margin,
    Number,
    claims_of,
    judge,
    margin_of,
    read_verdicts,
    write_verdicts,
)
from sojourn.studies.means import flat, ratio, tabulate
from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.statistics import crossing, rank_correlation, straight_line

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


def _answers(spark: SparkSession, folder: Path, asked: dict[str, str]) -> dict[str, float]:
    for name, frame in views(spark, str(folder)).items():
        frame.createOrReplaceTempView(name)
    return {name: spark.sql(query).collect()[0]["value"] for name, query in asked.items()}


def test_sql_gives_the_numbers_again(spark: SparkSession, tmp_path: Path) -> None:
    """Means over seeds, ratios and fits of them, sums, means of lists: the query gives the number."""
    specs, rows = _grid()
    runs: pd.DataFrame = runs_table(specs, rows)
    runs.to_parquet(tmp_path / "runs.parquet", index=False)
    table = tabulate(specs, rows, measures=[MEASURE])
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
    for name, value in _answers(spark, tmp_path, asked).items():
        assert value == pytest.approx(float(cited[name]), rel=1e-12), asked[name]


def test_sql_gives_what_is_made_of_lines(spark: SparkSession, tmp_path: Path) -> None:
    """Rank correlations with ties, crossings, the highest point, where quenching breaks even, intervals."""
    specs, rows = _grid()
    runs_table(specs, rows).to_parquet(tmp_path / "runs.parquet", index=False)
    table = tabulate(specs, rows, measures=[MEASURE])
    low, high = (table.points("fig8", series, "none", MEASURE) for series in ("a", "it's"))
    ys = [low[2.0], high[2.0], low[1.0], high[1.0], low[2.0]]
    xs = [1.0, 2.0, 3.0, 3.0, 5.0]
    falling = [(x, 1.3 - 0.1 * y) for x, y in zip(xs[:3], (low[1.0], high[1.0], high[2.0]), strict=True)]
    shares = [(low[1.0] * 0 + share, ratio) for share, ratio in falling]
    cited = {
        "rank": rank_correlation(xs, ys),
        "crossing": crossing(xs[:3], sorted(ys[:3]), 0.6),
        "at once": crossing(xs, ys, 0.1),
        "nowhere": crossing(xs, ys, 9.0),
        "highest at": widest_of(low, max(low, key=lambda x: low[x])),
        "break-even": break_even([(share, ratio - 0.25) for share, ratio in shares]),
        "always": break_even([(share, ratio - 1) for share, ratio in shares]),
        "never": break_even([(share, ratio + 1) for share, ratio in shares]),
        **flat("half", table.intervals("fig8", "it's", "none", MEASURE)),
    }
    assert [cited[name] for name in ("nowhere", "always", "never")] == [math.inf, 0.0, math.inf]
    assert 1.0 < cited["crossing"] < 3.0 > cited["break-even"] > 1.0
    asked = queries(cited)
    assert set(asked) == set(cited)
    for name, value in _answers(spark, tmp_path, asked).items():
        assert value == pytest.approx(float(cited[name]), rel=1e-9), asked[name]


def _trials() -> tuple[list[RunSpec], list[Row]]:
    """Trials in which nodes move, at three timeouts, and layouts of two models in two blocks."""
    draw = np.random.default_rng(4)
    specs, rows = [], []
    points = [("move", "", x) for x in (2.0, 5.0, 12.0)] + [
        ("fig11", name, 50.0) for name in ("ni-x", "ni-r")
    ]
    for experiment, series, x in points:
        for first in (1, 41):
            run_id = f"{experiment} {series} {x} {first}"
            spec = RunSpec(
                run_id=run_id,
                experiment=experiment,
                series=series,
                computations="none",
                axis="x",
                x=x,
                seed=first,
                cost=1.0,
                spec_json="{}",
            )
            specs.append(spec)
            row: Row = {"run_id": run_id, "seed": first, "error": None}
            if experiment == "move":
                lists: dict[str, object] = {
                    name: draw.integers(1, 4, 40).tolist() for name in ("hops", "hops_after")
                }
                lists |= {"seconds": (x + draw.random(40)).tolist(), "stable": [1.0] * 40}
                lists |= {"cost": [math.nan, *draw.random(39).tolist()]}
            else:
                lists = {"values": {name: draw.random(40).tolist() for name in ("nhop", "combo")}}
                lists |= {"degrees": draw.random(40).tolist()}
            rows.append(row | {name: json.dumps(values) for name, values in lists.items()})
    return specs, rows


def test_sql_gives_numbers_of_single_layouts_and_trials(spark: SparkSession, tmp_path: Path) -> None:
    """Quantiles, spreads and intervals over layouts; shares of pairs; fits, seconds and hops over trials."""
    specs, rows = _trials()
    runs_table(specs, rows).to_parquet(tmp_path / "runs.parquet", index=False)
    table = TreeTable(specs, rows)
    degrees, trials = table.sample("degrees", "fig11", "ni-x", 50.0), moves(table)
    assert trials is not None
    cited = {
        "mean": degrees.mean(),
        "most": degrees.most(),
        "count": degrees.size(),
        "spread": degrees.spread(),
        "low": degrees.quantile(0.025),
        "half": degrees.half(),
        "half of a ratio": table.half_width("fig11", "ni-r", 50.0, "nhop", "combo"),
        "line": trials.line("timeout", trials["timeout"]).r2,
        "product": trials.line("timeout * hops", trials["timeout"] * trials["hops"]).r2,
        "a hop": Hops(trials, "hops_after").per_hop,
        "cost": trials.number("avg(cost)", float(np.nanmean(trials["cost"])), "NOT isnan(cost)"),
        **flat("seconds at hops", seconds_by(trials, "hops")),
    }
    lowest, in_order = single_layouts(table, ["ni-x", "ni-r"], 50.0)
    cited |= {"lowest": lowest, "in order": in_order}
    assert len(trials["seconds"]) == 240
    asked = queries(cited)
    assert set(asked) == set(cited)
    for name, value in _answers(spark, tmp_path, asked).items():
        assert value == pytest.approx(float(cited[name]), rel=1e-9), asked[name]


def test_a_number_that_no_table_gives_is_said_to_be_none() -> None:
    """The evidence says which numbers are from elsewhere and where from, and so does the record."""
    claim = claims_of("adhoc-tree")["C-fig9"]
    measured: dict[str, Number | Told] = {
        "n": whole(Cited(3.0, "(SELECT 3)")),
        "p": stated(1.5, PRINTED),
        "m": 1.0,
    }
    found = judge(claim, holds=True, measured=measured, evidence="It is so.")
    assert found.measured == {"n": 3, "p": 1.5, "m": 1.0}
    assert found.queries == {"n": "SELECT (SELECT 3) AS value"}
    assert found.unmeasured == {"p": PRINTED}
    assert found.evidence == f"It is so. Not from tables: p ({PRINTED})."
    many: dict[str, Number | Told] = {f"p{number}": stated(number, PRINTED) for number in range(5)}
    assert f"5 numbers ({PRINTED})" in judge(claim, holds=True, measured=many, evidence="").evidence


def test_a_margin_of_cited_numbers_is_written_as_a_number(tmp_path: Path) -> None:
    """Checks may take what decides from the table of means as it is."""
    claim = claims_of("adhoc-tree")["C-fig9"]
    margin = Margin(of="a ratio", value=Cited(0.25, "1"), half=Cited(0.5, "2"))
    write_verdicts([judge(claim, holds=True, measured={}, evidence="", margin=margin)], tmp_path / "c.json")
    (read,) = read_verdicts(tmp_path / "c.json")
    assert read.margin == Margin(of="a ratio", value=0.25, half=0.5)
