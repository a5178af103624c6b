"""A study's measures by configuration: mean and 95% interval over seeds.

`long_measures` turns a sweep's results into one row per run and measure; `with_intervals` averages such rows.

Rules: sums run in the order of the seeds, inside one array a configuration, so the same runs give the same
bits on any number of partitions. A run that failed, a measure that is null or not a number takes no part.
With one seed there is a mean and no interval. Not here: which measures a study has.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from scipy import stats

from sojourn.errors import SojournError

CONFIDENCE = 0.95
TABLE_MAX = 200
"""Degrees of freedom up to which Student's quantile is looked up; above, the expansion is exact to 1e-9."""


class MetricsError(SojournError):
    """A table of runs lacks what a mean needs."""


def long_measures(results: DataFrame, measures: Sequence[str] | None = None) -> DataFrame:
    """One row per run and measure of a sweep's results: `run_id`, `seed`, `measure`, `value`."""
    long = results.where(sf.col("error").isNull()).select(
        "run_id", "seed", sf.explode("numbers").alias("measure", "value")
    )
    return long if measures is None else long.where(sf.col("measure").isin(list(measures)))


def with_intervals(values: DataFrame, by: Sequence[str]) -> DataFrame:
    """Mean, half-width of its 95% interval and number of runs, for each configuration and measure.

    `values` holds `seed`, `measure`, `value` and the columns of `by`.
    """
    lacking = [name for name in (*by, "seed", "measure", "value") if name not in values.columns]
    if lacking:
        raise MetricsError(f"the table of runs lacks {', '.join(lacking)}: name it among its columns.")
    keys = [*by, "measure"]
    mean = sf.col("total") / sf.col("runs")
    spread = sf.sqrt(sf.col("squares") / (sf.col("runs") - 1))
    return (
        values.where(sf.col("value").isNotNull() & ~sf.isnan("value"))
        .groupBy(*keys)
        .agg(sf.array_sort(sf.collect_list(sf.struct("seed", "value"))).alias("sample"))
        .withColumn("runs", sf.size("sample"))
        .withColumn("total", _sum_in_order(lambda row: row["value"]))
        .withColumn("mean", mean)
        .withColumn("squares", _sum_in_order(lambda row: _square(row["value"] - sf.col("mean"))))
        .withColumn(
            "interval",
            sf.when(
                sf.col("runs") > 1, student_quantile(sf.col("runs") - 1) * spread / sf.sqrt(sf.col("runs"))
            ),
        )
        .select(*keys, "mean", "interval", "runs")
    )


def student_quantile(freedom: Column) -> Column:
    """Student's t for a two-sided 95% interval, as a column function of the degrees of freedom."""
    table = sf.array(*(sf.lit(_quantile(nu)) for nu in range(1, TABLE_MAX + 1)))
    return sf.when(freedom <= TABLE_MAX, sf.get(table, freedom.cast("int") - 1)).otherwise(
        _expansion(freedom)
    )


def _quantile(freedom: int) -> float:
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


def _expansion(freedom: Column) -> Column:
    """Fisher's expansion of Student's quantile around the normal one (Abramowitz and Stegun, 26.7.5)."""
    nu = freedom.cast("double")  # its cube leaves an integer's range
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + sf.lit(first) / nu + sf.lit(second) / (nu * nu) + sf.lit(third) / (nu * nu * nu)


def _square(value: Column) -> Column:
    return value * value


def _sum_in_order(term: Callable[[Column], Column]) -> Column:
    return sf.aggregate("sample", sf.lit(0.0), lambda total, row: total + term(row))
