"""One whole live broker as pure code: sessions, routing, moving clients and links behind one door.

| module | its business |
| --- | --- |
| `live_broker.py` | the door: facts in, effects out |
| `facts.py`, `effects.py`, `settings.py` | what a broker is told, what it answers, what it knows of itself |
| `scheme.py` | what the settings mean to the mobility core |
| `session_facts.py`, `ruling.py` | facts that concern sessions alone; what operators rule over clients |
| `meetings.py`, `hello.py`, `reconciling.py` | connections to neighbours begin, end, and begin anew |
| `network.py`, `links.py` | what neighbours send, and what goes out to them |
| `clients.py`, `arrivals.py` | sessions and the mobility core; where the session is of a client that comes |
| `owners.py` | whose a name is where two owners have sessions of one client identifier |
| `event_routing.py`, `runs.py` | the way of an event through a broker; events that take it together |
| `doubting.py` | sessions that may have been given away in moments that a store lost |
| `endings.py` | what is lost with a session that ends, since its client has another |
| `sharing.py`, `crews.py`, `membership.py` | shared subscriptions: who picks a member, and what members say |
| `channel.py`, `frame_heads.py`, `frame_events.py` | a link that loses and repeats nothing |
| `messages.py`, `wire.py`, `carried.py` | what brokers say to each other, and as bytes; events among it |
| `proof.py`, `logins.py`, `addresses.py` | who neighbours and clients are; what an address may take |
| `questions.py`, `answering.py` | what a page asks brokers, and their answers |
| `pressure.py`, `slices.py` | what waits when a link is full; whose turn it is |
| `roamers.py`, `names.py`, `forgetting.py` | clients and interests: what is known, what is forgotten |
| `confirming.py`, `quenching.py` | what SUBACK promises; publishers are told what is wanted |
| `records.py`, `reviving.py` | the bytes of a journal; a broker that is told its journal again |
| `snapshot.py`, `state_*.py` | a broker as bytes and back |
| `transplanting.py`, `requeueing.py` | a broker in another network; what was queued for neighbours |
| `witnesses.py` | who may watch |

Not here: sockets, files, clocks, passwords (`live/`).
"""
