"""What all tests share: one small Spark session a test process, started only when a test asks for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores, a small heap and small partitions."""
    session = spark_session("local[2]", memory_gib=1.0, settings={"spark.sql.shuffle.partitions": "4"})
    yield session
    session.stop()
