"""One whole live broker as pure code: sessions, routing, moving clients and links behind one door.

| module | its business |
| --- | --- |
| `settings.py` | what a broker is told about itself and its network |
| `network.py` | where the session of a client is that comes, and what neighbours send |
| `serving.py` | what sessions and the mobility core tell each other |
| `neighbourhood.py` | the brokers around one, and what goes out to them |
| `channel.py`, `wire.py` | a link that loses and repeats nothing; messages as bytes |
| `pressure.py` | what waits when a link is full |
| `roamers.py`, `names.py`, `forgetting.py` | clients and interests: what is known, what is forgotten |
| `quenching.py` | publishers are told what is wanted |
| `witnesses.py` | who may watch |

Not here: sockets, files, clocks, passwords (`live/`).
"""
