"""Subscribers on the move between brokers, by radio: paper 001's world.

| module | its business |
| --- | --- |
| `run.py` | one run, from a scenario to its results |
| `scenario.py`, `setting.py`, `files.py` | what is asked for, what follows from it, and as a file |
| `world.py` | brokers, links and clients at work |
| `clients.py`, `publishers.py`, `subscribers.py` | who takes part |
| `radio.py` | the last hop |
| `workload.py` | what is published |
| `training.py` | moves from which brokers learn their neighbours |
| `tally.py`, `trace.py` | what a run counts, and what it records |
"""
