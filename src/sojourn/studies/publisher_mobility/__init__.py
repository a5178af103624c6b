"""Paper 000: what it costs a content-based network that its publishers move, measured.

| module | its business |
| --- | --- |
| `study.py` | all parts put together; begin here |
| `parameters.py`, `grid.py` | what the study fixes, and its runs |
| `measures.py`, `moves.py` | one run to its row of measures, and which of its moves count |
| `recording.py`, `measuring.py` | the same by facts and SQL, on Spark |
| `table.py`, `compare.py` | what is averaged, and how lines are compared |
| `checks.py`, `checks_load.py`, `checks_locality.py`, `checks_tables.py` | the claims |
| `presentation.py`, `figures.py` | what a person is shown |
"""
