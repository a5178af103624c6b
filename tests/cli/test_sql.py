"""`sojourn sql` asks, and changes nothing."""

from __future__ import annotations

import pytest

from sojourn.cli.sql import SqlError, require_question


@pytest.mark.parametrize(
    "query",
    [
        "select 1",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
        "select `insert` from deliveries",
        "select 'insert into' as words, replace(client, 'a', 'b') from deliveries",
        "describe deliveries",
    ],
)
def test_questions_are_asked(query: str) -> None:
    """Also those in which words that change something are names or values."""
    require_question(query)


@pytest.mark.parametrize(
    "query",
    [
        "drop table deliveries",
        "with a as (select 1 as x) insert overwrite directory 'elsewhere' using parquet select * from a",
        "from deliveries insert into other select 1",
        "WITH a AS (SELECT 1) DELETE FROM a",
        "with a as (select 1) merge into b using a on true when matched then delete",
    ],
)
def test_nothing_is_changed(query: str) -> None:
    """What writes or removes rows is refused, wherever in the question it stands."""
    with pytest.raises(SqlError, match="nothing is changed here"):
        require_question(query)


def test_a_question_that_does_not_end_is_refused_in_a_sentence() -> None:
    """Before Spark is started for it."""
    with pytest.raises(SqlError, match="cannot be read"):
        require_question("select 'oops")
