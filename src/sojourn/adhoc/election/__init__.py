"""A broker without infrastructure: searched for, elected when absent, merged when two meet (paper 003, 3.1).

| module | its business |
| --- | --- |
| `node.py` | the core of one node: a fact and the time go in, effects come out; begin here |
| `states.py` | how a node stands to the broker: every transition, as one table |
| `messages.py`, `codec.py` | what nodes say, are told and ask for; the same as bytes |
| `user.py` | what the user of a node wants, has seen, and has published |
| `office.py`, `table.py` | what a node keeps while it is the broker, and who wants what |
| `upstream.py` | two brokers that coordinate instead of merging |
| `timing.py`, `portions.py` | when something is said, and how much at once |
"""
