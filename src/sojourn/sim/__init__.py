"""Deterministic worlds, each from one seed: clocks, links, brokers and clients around the protocol cores.

| package | the world |
| --- | --- |
| `publishers/` | publishers that move between brokers (paper 000) |
| `roaming/` | subscribers that move between brokers, by radio (paper 001) |
| `adhoc/` | nodes that build a tree (paper 002) |
| `edge/`, `election/` | sources and displayers that move; partitions that elect a broker (paper 003) |
| `manet/` | nodes that route topics, packet by packet (paper 004) |
| `handoff_check/` | hand-offs under faults |
| `live_check/` | whole live brokers under faults |

What they share: `clock.py`, `streams.py` (randomness), `links.py`, `servers.py`, `radio.py`, `topology.py`,
`scenario.py`, `causes.py`, `results.py`, `recorder.py` (a trace), `shortening.py` (scripts that fail).
"""
