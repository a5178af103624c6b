"""What all tests share: the order in which they begin, and one small Spark session for each process.

The session is started only when a test asks for it.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from sojourn.pipeline.session import spark_session
from tests.ordering import dealt, needs_spark

settings.register_profile("any speed", deadline=None)
settings.load_profile("any speed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let what takes long begin first, where several processes share the tests."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = dealt(
            items,
            workers,
            name=lambda item: item.nodeid,
            together=lambda item: needs_spark(item.nodeid, getattr(item, "fixturenames", ())),
        )


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores, a small heap and small partitions."""
    session = spark_session("local[2]", memory_gib=1.0, settings={"spark.sql.shuffle.partitions": "4"})
    yield session
    session.stop()
