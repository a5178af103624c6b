"""Traces on disk: what a run wrote, in segments that are whole or not there.

`SegmentWriter` is for a process that goes on writing, `write_run` for a run that is over. Reading is the
pipeline's business.
"""

from sojourn.trace.columns import COLUMNS, FACT_COLUMNS
from sojourn.trace.segments import SegmentWriter, TraceError, segment_folder, write_run

__all__ = ["COLUMNS", "FACT_COLUMNS", "SegmentWriter", "TraceError", "segment_folder", "write_run"]
