"""Hand-offs under faults, from a seed: `sojourn check handoff`.

| module | its business |
| --- | --- |
| `check.py` | many seeds, and the shortest script that fails |
| `script.py`, `races.py` | what happens in a world |
| `world.py` | brokers under trouble |
| `oracle.py` | what must hold |
"""
