"""What the driver found out about a client that knocked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn.interest.values import Scalar
from sojourn.mqtt.session import Permissions
from sojourn.mqtt.session_state import SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the driver found out about a client that knocked."""

    username: str = ""
    attributes: Mapping[str, Scalar] = field(default_factory=dict)
    """Attributes of the subscriber that somebody vouches for."""
    may_state: bool = True
    """Whether the client's own word about further attributes counts."""
    permissions: Permissions | None = None
    state: SessionState | None = None
    """The session as another broker kept it."""
    owner: str | None = None
    """The name that the client proved, which sessions belong to (`rights.py`); None where nobody looks."""
    among_others: bool = False
    """Whether there may be sessions of other owners, so that one must be looked for before it is ended."""
    until_s: float | None = None
    """When what it proved its name by runs out; None for never."""
