"""The data pipeline on Spark: what a run wrote, read and judged."""
