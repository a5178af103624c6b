"""Networks of whole live brokers, broken in every way that a seed decides (`sojourn check live`).

| module | its business |
| --- | --- |
| `script.py`, `joining.py` | what a seed decides: brokers, links, clients, and what happens to them |
| `world.py`, `pipes.py`, `wires.py` | the clock; streams of bytes that break, stall and part |
| `process.py`, `disk.py` | one broker's process and its store, which die at any point |
| `clients.py`, `walkers.py`, `events.py` | MQTT clients that keep to the rules, and where they go |
| `trespassers.py`, `strangers.py`, `hostility.py` | clients that do what nobody may, and that keep no rule |
| `oracle.py`, `groups.py`, `log.py` | what was promised, judged from what clients saw and which faults were |
| `ending.py`, `books.py` | the faults stop: everything is served, and in the end forgotten |
| `check.py`, `shrink.py` | one check, and a failing one cut down to what it needs |
| `campaign.py`, `running.py` | many seeds in several processes, over hours, in a file that survives a kill |
| `replaying.py`, `comparing.py` | what live brokers recorded, told again and lived on from |
| `mutation_run.py` | which of the mistakes below are found, and after how many seeds |
| `mutations.py` | brokers broken on purpose, which a check must find |
"""
