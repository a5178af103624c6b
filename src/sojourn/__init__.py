"""Content-based publish/subscribe for clients that move, simulated and live, audited on Spark.

What programs use, each loaded when it is asked for, and nothing of the rest with it:

| name | what it is |
| --- | --- |
| `Client`, `ReplicaClient`, `Received` | publish, subscribe by content and move, at one broker or several |
| `Filter`, `Event`, `covers`, `intersects` | the language of subscriptions, as brokers use it |
| `audit`, `AuditOptions`, `AuditReport` | what a run delivered, lost or doubled; needs the extra `[spark]` |
| `SojournError` | the base of every error here: one sentence that names the way out |
| `ClientError`, `RefusedError`, `UnreachableError` | a client cannot; a broker says no; nobody is there |
| `FilterSyntaxError`, `EventError` | a text is no filter; values are no event |
| `MissingExtraError` | a library is missing that only some of Sojourn needs |
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.errors import MissingExtraError, SojournError
    from sojourn.interest import Event, EventError, Filter, FilterSyntaxError, covers, intersects
    from sojourn.live.client.client import Client
    from sojourn.live.client.inbox import Received
    from sojourn.live.client.link import ClientError, RefusedError, UnreachableError
    from sojourn.live.client.replicas import ReplicaClient
    from sojourn.pipeline.audit_api import audit
    from sojourn.pipeline.audit_job import AuditReport
    from sojourn.pipeline.audit_options import AuditOptions

__version__ = "0.1.0"
__all__ = [
    "Client",
    "ClientError",
    "Event",
    "EventError",
    "Filter",
    "FilterSyntaxError",
    "MissingExtraError",
    "Received",
    "RefusedError",
    "ReplicaClient",
    "SojournError",
    "UnreachableError",
    "__version__",
    "covers",
    "intersects",
]


def _can_audit() -> bool:
    """Whether the libraries of the extra `[spark]` that an audit needs are there; none of them is loaded."""
    try:
        return all(find_spec(name) for name in ("numba", "numpy", "pandas", "pyarrow", "pyspark"))
    except ImportError:
        return False


if TYPE_CHECKING or _can_audit():  # `from sojourn import *` asks for every name here, and must not fail
    __all__ += ["AuditOptions", "AuditReport", "audit"]

_HOMES = {
    "AuditOptions": "sojourn.pipeline.audit_options",
    "AuditReport": "sojourn.pipeline.audit_job",
    "Client": "sojourn.live.client.client",
    "ClientError": "sojourn.live.client.link",
    "Event": "sojourn.interest",
    "EventError": "sojourn.interest",
    "Filter": "sojourn.interest",
    "FilterSyntaxError": "sojourn.interest",
    "MissingExtraError": "sojourn.errors",
    "Received": "sojourn.live.client.inbox",
    "RefusedError": "sojourn.live.client.link",
    "ReplicaClient": "sojourn.live.client.replicas",
    "SojournError": "sojourn.errors",
    "UnreachableError": "sojourn.live.client.link",
    "audit": "sojourn.pipeline.audit_api",
    "covers": "sojourn.interest",
    "intersects": "sojourn.interest",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        from sojourn.errors import missing_extra  # noqa: PLC0415 - most imports succeed

        raise missing_extra(error, f"sojourn.{name}", "spark") from None
    return found


def __dir__() -> list[str]:
    """What there is, for interpreters that complete names."""
    return [*_HOMES, "__version__"]
