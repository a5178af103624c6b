"""The `sojourn` command line."""
