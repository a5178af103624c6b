"""The five papers' evaluations as studies: parameters, grid, measures, checks and figures.

| package | what is measured |
| --- | --- |
| `publisher_mobility/` | paper 000: what it costs a content-based network that its publishers move |
| `handoff/` | paper 001: roaming subscribers, and three ways to hand them over |
| `adhoc_tree/` | paper 002: which tree to build without infrastructure |
| `architectures/` | paper 003: central, quenched, broadcast, multicast and replicated |
| `manet/` | paper 004: publish/subscribe at speed, over AODV and GPSR |

No study imports another. What they share:

| module | its business |
| --- | --- |
| `study.py`, `registry.py` | what a study is, and which there are; begin here |
| `base.py` | scales, outcomes, how one claim is judged, the files of results |
| `runner.py`, `spark_runner.py` | a grid's runs, in plain processes or on Spark |
| `recorded.py` | what a run recorded, as tables |
| `means.py`, `statistics.py`, `conditions.py` | means, intervals, fits; what a check asks of them |
| `claims.py`, `papers.py` | the ledger (`claims.toml`): what papers say, and the verdicts |
| `cited.py`, `cited_lists.py`, `cited_points.py` | numbers with the query that gives them |
| `drawing.py`, `marks.py`, `captions.py` | figures, what a paper says in them, what stands under them |
| `wording.py`, `reproduction.py` | numbers in sentences; the page of all that was found |
"""
