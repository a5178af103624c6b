"""The rooms of the Spark data source `sojourn`; the source itself is `pipeline/events_source.py`."""
