"""Nodes without brokers, packet by packet: paper 004's world, compiled.

| module | its business |
| --- | --- |
| `world.py` | one run, from a scenario to its results |
| `scenario.py` | what is asked for |
| `maps.py`, `geometry.py` | streets and distances |
| `movement.py`, `fcd.py` | how nodes move, here and in traffic of other programs |
| `state.py`, `heap.py`, `loop.py`, `mac.py` | all that the compiled loop works on, and the loop itself |
| `trace.py` | what a run records |
"""
