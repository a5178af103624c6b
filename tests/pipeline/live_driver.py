"""A streaming audit in a process of its own, for the test that kills it.

Usage: live_driver.py ROOT RUN OUT
"""

import sys

from sojourn.pipeline.audit_options import LiveOptions
from sojourn.pipeline.session import spark_session
from sojourn.pipeline.streaming import start_live_audit


def main(root: str, run_id: str, out: str) -> None:
    """Audit until somebody ends us."""
    spark = spark_session("local[2]", memory_gib=1.0)
    options = LiveOptions(delay_s=5.0, patience_s=30.0, buckets=2, trigger_s=0.1)
    start_live_audit(spark, root, run_id, out, options).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
