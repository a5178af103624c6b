"""Nodes of an ad-hoc network that build a tree: paper 002's world.

| module | its business |
| --- | --- |
| `world.py` | rounds of the protocol over a layout |
| `layout.py` | where nodes are |
| `mobility.py` | how they move |
"""
