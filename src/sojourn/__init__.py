"""Content-based publish/subscribe for clients that move, simulated and live, audited on Spark.

`from sojourn import Client` gives the client library; it is loaded when it is asked for, and nothing of the
rest (Spark, compiled simulations) with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.live.client.client import Client
    from sojourn.live.client.inbox import Received
    from sojourn.live.client.link import ClientError, RefusedError
    from sojourn.live.client.replicas import ReplicaClient

__version__ = "0.1.0"
__all__ = ["Client", "ClientError", "Received", "RefusedError", "ReplicaClient", "__version__"]

_HOMES = {
    "Client": "sojourn.live.client.client",
    "ClientError": "sojourn.live.client.link",
    "Received": "sojourn.live.client.inbox",
    "RefusedError": "sojourn.live.client.link",
    "ReplicaClient": "sojourn.live.client.replicas",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
