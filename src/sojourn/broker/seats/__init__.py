"""Who plays a broker, and who holds copies of its journal: facts in, effects out.

A *seat* is a broker's name in the network. Its *term* says which process plays it (the host) and which
others hold a copy of its journal (the followers). `council.py` is one process's part in all seats, and
`voting.py` how it votes; `register.py` has what it must not forget, `choosing.py` who should sit where,
`attempt.py` how a term follows another, `rolls.py` who votes, `shipping.py` and `following.py` how copies are
kept. ARCHITECTURE.md has the drawing and the argument for safety.
"""
