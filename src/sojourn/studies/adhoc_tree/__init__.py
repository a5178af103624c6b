"""Paper 002: which tree to build without infrastructure, what it costs, and how far it is from the best.

| module | its business |
| --- | --- |
| `study.py` | all parts put together; begin here |
| `parameters.py`, `grid.py` | what the study fixes, and its tasks |
| `runs.py` | what one task does, and its measures |
| `recording.py`, `measuring.py` | the same by facts and SQL, on Spark |
| `table.py`, `trials.py` | what tasks returned, by point; single moves of a node |
| `checks.py`, `checks_beyond.py`, `examples.py` | the claims, and the paper's worked examples |
| `differences.py` | why figures differ from the paper's: one thing is changed, the rest is as it is |
| `presentation.py`, `figures.py`, `picture.py` | what a person is shown |
"""
