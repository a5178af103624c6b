"""Whether somebody else is where a broker is to be: looked at before any process is started.

It is a look and no promise: who comes in between is noticed by the broker itself, which takes its store and
its ports for good.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from pathlib import Path

from sojourn.live.config import BrokerConfig, parse_address


def occupied(place: BrokerConfig) -> str | None:
    """Say who is in a broker's place: at its store, or at an address of its; None if it is free."""
    if place.store is not None and _is_locked(Path(place.store)):
        return f"the store {place.store} is in use"
    for key in ("listen", "listen_tls", "listen_ws", "listen_wss", "peers"):
        wanted = getattr(place, key)
        if wanted is not None and _is_taken(wanted, key):
            return f"another process has {wanted}"
    return None


def _is_locked(store: Path) -> bool:
    """Whether a process has a store; the folder stays as it is."""
    try:
        lock = os.open(store / "lock", os.O_RDWR)
    except OSError:
        return False  # there is none, or none that can be opened: the broker says what is wrong
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


def _is_taken(wanted: str, key: str) -> bool:
    """Whether somebody listens at an address of ours; a port of 0 is free."""
    address = parse_address(wanted, key)
    if not address.port:
        return False
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as brokers do: the dead are no obstacle
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
