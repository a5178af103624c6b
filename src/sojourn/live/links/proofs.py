"""By what brokers prove to each other who they are."""

from __future__ import annotations

import ssl
from typing import NamedTuple


class Proof(NamedTuple):
    """By what neighbours know each other; at least one of the secret and the certificates."""

    network: str
    secret: bytes | None = None
    server_tls: ssl.SSLContext | None = None
    client_tls: ssl.SSLContext | None = None
