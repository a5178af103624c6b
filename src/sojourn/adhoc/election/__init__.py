"""A broker without infrastructure: searched for, elected when absent, merged when two meet (paper 003, 3.1).

`states.py` has the transitions, `messages.py` what nodes say, `table.py` what a broker keeps, `node.py` the
core.
"""
