"""What is written to clients, and from which size on a payload is shared; this needs nothing else."""

from __future__ import annotations

LARGE = 16_384
"""A payload of so many bytes is in no form: all that are sent it share the one it came in."""

Data = bytes | memoryview
"""What is written to a client."""
