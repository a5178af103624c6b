"""Publish/subscribe among nodes that have no fixed broker, as pure protocol cores.

| room | its business |
| --- | --- |
| `tree/` | a tree over all nodes that they build themselves; its cost, and the best one (paper 002) |
| `election/` | nodes that elect one of them as their broker, and merge when two groups meet (paper 003) |
| `topics/` | events by topic, matched at the topic's home (paper 004), over one of the two below |
| `aodv/` | routes that are asked for when they are needed (RFC 3561) |
| `gpsr/` | packets that follow places instead of routes |
| `packets.py` | what nodes of the last three send, as one record, and what their cores answer |
| `kernels.py` | how these cores are compiled |
| `errors.py` | the error of them all |
"""
