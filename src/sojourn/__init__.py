"""Content-based publish/subscribe for clients that move, simulated and live, audited on Spark."""

__version__ = "0.1.0"
