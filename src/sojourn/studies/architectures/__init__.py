"""Paper 003: central, quenched, broadcast, multicast and replicated publish/subscribe, measured.

| module | its business |
| --- | --- |
| `study.py` | all parts put together; begin here |
| `parameters.py`, `situations.py`, `grid.py`, `spec.py` | what the study fixes, and its tasks |
| `runs.py`, `runs_edge.py`, `replicas.py` | what one task does, and its measures |
| `recording.py`, `measuring.py`, `traced.py` | the same by facts and SQL, on Spark; whole traces |
| `queue_oracle.py` | what a reader wants who saw everything, to hold queues to |
| `table.py`, `quenching.py` | what tasks returned, by point; quenching against none |
| `checks.py` | the claims |
| `presentation.py`, `figures.py`, `advice.py` | what a person is shown, and which architecture when |
"""
