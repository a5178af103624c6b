"""What runs at the edge, beside clients and where they connect (paper 003).

| module | what it is for |
| --- | --- |
| `source.py` | a source that comes and goes: buffer, upload, quenching |
| `quench.py` | the combined interest of a broker, in versions, and a source's copy of it |
| `displayer.py` | a displayer: subscriptions and connection log carried along, what is shown |
| `filters.py` | what a displayer of replicated brokers lets through: all, each once, each in order |
| `broker.py` | an edge broker around any routing strategy |
| `custody.py`, `connections.py` | what a broker keeps for a displayer, so that it gets each event once |
| `queues.py` | queues thinned by what a subscription means |
| `properties.py`, `enumeration.py` | ordered, consistent, complete; and Table 1 from every small run |

Every core takes facts and the time and answers with effects; all of both is plain data.
"""
