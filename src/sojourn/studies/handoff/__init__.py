"""Paper 001: roaming subscribers and three ways to hand them over, measured.

| module | its business |
| --- | --- |
| `study.py` | all parts put together; begin here |
| `paper.py`, `parameters.py`, `fit.py` | what the paper prints, what the study fixes or fits |
| `grid.py` | which runs there are |
| `measures.py` | one run to its row of measures |
| `recording.py`, `measuring.py` | the same by facts and SQL, on Spark |
| `table.py`, `compare.py` | what is averaged, and how cells are compared |
| `checks.py`, `checks_tables.py`, `checks_model.py`, `checks_beyond.py` | the claims |
| `chains.py` | the paper's Markov chains |
| `presentation.py`, `figures.py`, `figures_beyond.py` | what a person is shown |
"""
