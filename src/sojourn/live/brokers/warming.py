"""Loading what takes a while to load, before it is needed on the loop.

The kernels of the filter index are compiled once a machine and then read from disk, which still takes about a
second. A broker alone has that done in a thread while it serves, and uses the index from then on; one that
routes needs it for its first subscription, and loads it before it listens.
"""

from __future__ import annotations

from sojourn.interest import Event, Filter


def load_index_kernels() -> None:
    """Do with a small index what a broker does with its own."""
    from sojourn.interest.index import FilterIndex  # noqa: PLC0415  (this is what takes a while)

    index = FilterIndex()
    filters = [
        Filter.parse(text)
        for text in (
            "n > 1",
            "n BETWEEN 1 AND 2 AND s = 'x'",
            "s LIKE 'x%'",
            "topic LIKE 'a/+'",
            "m IS NULL",
            "b",
        )
    ]
    index.add_many(range(4), filters[:4])
    for key, wanted in enumerate(filters[4:], 4):
        index.add(key, wanted)
    index.match(Event({"n": 2, "s": "x"}, topic="a/b"))
    index.remove(0)
