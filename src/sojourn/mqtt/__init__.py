"""MQTT 5 and 3.1.1 sessions as pure code: bytes and time in, packets and decisions out.

The rules of the protocol packages hold here too: no sockets, no clock, no chance. A driver (`live/`) owns
the connections and tells the core what happened; the core answers with what is to be sent, closed,
published, stored. Bytes are written and read by the `mqtt5` package; what that package does not check is
checked in `packets.py`.

| module | its business |
| --- | --- |
| `packets.py` | checking and decoding packets, and the reason codes of what is wrong with them |
| `mqtt3.py` | packets of MQTT 3.1.1, read as those of MQTT 5 |
| `answers.py` | what clients are told, in the words of their version |
| `message.py`, `payload.py` | one publication, and the forms in which it goes out, each encoded once |
| `content.py` | attributes, filters, policies and advertisements in MQTT's user properties |
| `conventions.py` | the names of those properties |
| `topic_tree.py` | which subscriptions a topic reaches |
| `topic_counts.py` | how busy each topic is, for people who look |
| `filter_book.py` | which of many filters a message passes |
| `retained.py`, `shares.py` | the last retained message of each topic, and how much of them is whose |
| `session.py`, `session_state.py` | what is kept for a client, and the same as plain data |
| `connection.py`, `state.py`, `effects.py` | what is kept for a connection and for all; effects |
| `delivery.py` | from a message to the output and the queues of its subscribers |
| `room.py` | who takes how much of the room for messages: a client, an address, all |
| `handshake.py` | CONNECT to DISCONNECT: sessions found, taken over, resumed, ended; wills; time |
| `wills.py` | wills as CONNECT brings them |
| `subscribing.py` | SUBSCRIBE and UNSUBSCRIBE |
| `dispatch.py` | packets other than PUBLISH, each to who does what it asks |
| `custody.py` | what the rest of a broker does with single sessions: hold, give, take, end |
| `core.py` | the door: facts in, effects out |

Not here: passwords and permissions (the driver admits clients), other brokers (the driver routes), disks.
"""
