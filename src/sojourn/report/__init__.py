"""Self-contained pages that show a study's figures, claims and evidence without a network.

| module | its business |
| --- | --- |
| `page.py` | one HTML file per study, and the index of all |
| `numbers.py` | a figure's points as a table |
"""
