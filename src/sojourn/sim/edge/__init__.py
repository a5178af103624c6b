"""Mobile clients with sources and displayers of their own: paper 003's architectures.

| module | its business |
| --- | --- |
| `world.py` | brokers and edges at work |
| `workload.py` | what is published and wanted |
| `roaming.py` | where clients go |
"""
