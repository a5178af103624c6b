"""Publishers on the move between brokers of a fixed network: paper 000's world.

| module | its business |
| --- | --- |
| `world.py` | brokers, links and moving publishers at work |
| `workload.py` | what clients subscribe to and publish |
| `movement.py` | where publishers go, and when |
| `costs.py` | how long a broker takes for each message |
| `summary.py` | what a run came to |
"""
