"""Partitions of an ad-hoc network that elect brokers and merge.

| module | its business |
| --- | --- |
| `world.py` | nodes that lose and find each other |
| `history.py` | random histories of partitions |
| `fixed.py` | the fixed network, where nodes reach it |
"""
