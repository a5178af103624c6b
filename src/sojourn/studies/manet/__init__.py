"""Paper 004: publish/subscribe without infrastructure at speed, over AODV and GPSR, measured.

| module | its business |
| --- | --- |
| `study.py` | all parts put together; begin here |
| `parameters.py`, `readings.py`, `grid.py` | what the study fixes, other readings of the paper, the runs |
| `runs.py` | one run, and its measures |
| `recording.py`, `measuring.py` | the same by facts and SQL, on Spark |
| `table.py` | means by point, and every single run |
| `checks.py`, `checks_cost.py` | the claims |
| `presentation.py`, `figures.py`, `picture.py` | what a person is shown |
"""
