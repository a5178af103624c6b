"""One whole live broker as pure code: sessions, routing, moving clients and links behind one door.

| module | its business |
| --- | --- |
| `live_broker.py` | the door: facts in, effects out |
| `facts.py`, `effects.py`, `settings.py` | what a broker is told, what it answers, what it knows of itself |
| `session_facts.py`, `ruling.py` | facts that concern sessions alone; what operators rule over clients |
| `meetings.py`, `hello.py`, `reconciling.py` | connections to neighbours begin, end, and begin anew |
| `network.py`, `links.py` | what neighbours send, and what goes out to them |
| `clients.py`, `arrivals.py` | sessions and the mobility core; where the session is of a client that comes |
| `doubting.py` | sessions that may have been given away in moments that a store lost |
| `channel.py`, `wire.py` | a link that loses and repeats nothing; messages as bytes |
| `pressure.py`, `slices.py` | what waits when a link is full; whose turn it is |
| `roamers.py`, `names.py`, `forgetting.py` | clients and interests: what is known, what is forgotten |
| `confirming.py`, `quenching.py` | what SUBACK promises; publishers are told what is wanted |
| `snapshot.py`, `state_*.py`, `transplanting.py` | a broker as bytes and back; into another network |
| `witnesses.py` | who may watch |

Not here: sockets, files, clocks, passwords (`live/`).
"""
