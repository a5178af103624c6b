"""The `sojourn` command line.

A sub-command is the module of its name (`sojourn serve` is `serve.py`), and modules whose names begin with
that are its parts (`bench_*`, `check_*`, `demo_*`). `commands.py` lists them all; begin with it and with
`main.py`. The others:

| module | its business |
| --- | --- |
| `operate.py` | `reload`, `kick`, `ban`, `unban` and `bans`, which speak to running brokers |
| `shell_client.py` | what `pub` and `sub` share |
| `roll_call.py`, `brought_along.py` | who has come and who has left; brokers that come from another network |
| `spark_options.py`, `following.py` | what commands on Spark share |
| `help_texts.py`, `voice.py`, `logs.py` | how help, words to a person, and logs look |
| `heartbeat.py`, `sweep_bar.py` | how far a long command is |
| `watch.py`, `watch_manet.py` | a simulated world, drawn in the terminal |
| `machine.py`, `benchmarks.py` | what benchmarks were measured on, and what they share |
| `workshop.py` | commands that are in the sources alone |
"""

import signal
import sys

if sys.argv[1:2] == ["serve"]:
    # SIGHUP asks a broker to read its configuration anew, and would end one that cannot do so yet: it waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
