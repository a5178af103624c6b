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

What they share:

| module | its business |
| --- | --- |
| `clock.py`, `streams.py` | simulated time; named random streams that all come from one seed |
| `scenario.py` | what a run is described by, for all worlds; and paper 000's own factors |
| `topology.py`, `links.py`, `servers.py` | who is whose neighbour; links and brokers that take time |
| `radio.py` | whatever one node says, all in range hear |
| `causes.py`, `results.py` | what each move cost, and what a run measured |
| `recorder.py` | the trace of a run, for the pipeline |
| `foreknowledge.py` | a prediction that is never wrong, to measure others against |
| `shortening.py` | a script that fails, cut down to the steps that it needs |
"""
