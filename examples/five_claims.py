"""Ask five numbers of five claims, one a paper, of the tables that `sojourn reproduce all` left behind.

    sojourn reproduce all --scale smoke --out results
    python examples/five_claims.py results

Numbers in a study's claims.json have a query beside them, for `sojourn sql QUERY --from results/STUDY` as for
a program. Of each study this takes the first one, asks for it, and says whether the answer is the number.
"""

import json
import sys
from pathlib import Path

from sojourn.pipeline.session import spark_session
from sojourn.pipeline.views import views

spark = spark_session()
for folder in sorted(path.parent for path in Path(sys.argv[1]).glob("*/claims.json")):
    for name, rows in views(spark, str(folder)).items():
        rows.createOrReplaceTempView(name)
    claim = next(one for one in json.loads((folder / "claims.json").read_text()) if one.get("queries"))
    what, query = next(iter(claim["queries"].items()))
    told = claim["measured"][what]
    ((answer,),) = spark.sql(query).collect()
    print(f"{folder.name}, {claim['id']}: {what} is {told}; SQL says {answer:.6g}.", file=sys.stderr)
    print(folder.name, f"{answer:.4g}" == f"{float(told):.4g}")  # claims.json has four digits
