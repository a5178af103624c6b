"""The secret of a network: a file that only its owner reads, and that every broker of the network has.

write_secret(path)      # what `sojourn init` does; a secret that is there already stays
read_secret(path)       # or one sentence that says what is wrong with the file
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sojourn.broker.proof import SECRET_BYTES_MIN
from sojourn.errors import SojournError, typed

SECRET_NAME = "network.secret"  # noqa: S105 - the name of a file
SECRET_BYTES = 32
FILE_BYTES_MAX = 4_096
OTHERS = 0o077
"""The bits of a file's mode that let anybody but its owner do anything."""


class SecretError(SojournError):
    """The secret of a network cannot be read or written."""


def write_secret(path: Path) -> bool:
    """Write a fresh secret where there is none yet; return whether that was so."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise SecretError(f"The secret {path} cannot be written: {error.strerror}.") from None
    with os.fdopen(file, "w") as text:
        text.write(secrets.token_hex(SECRET_BYTES) + "\n")
    return True


def read_secret(path: str | Path) -> bytes:
    """Return the secret in a file that nobody else can read."""
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            secret = file.read(FILE_BYTES_MAX).strip()
    except FileNotFoundError:
        raise SecretError(
            f"The secret {path} is not there; `sojourn secret {typed(path)}` writes one, which every broker "
            "of the network needs."
        ) from None
    except OSError as error:
        raise SecretError(f"The secret {path} cannot be read: {error.strerror}.") from None
    if mode & OTHERS:
        raise SecretError(f"Others than its owner can use the secret {path}; `chmod 600 {path}` mends that.")
    if len(secret) < SECRET_BYTES_MIN:
        raise SecretError(
            f"The secret {path} has {len(secret)} bytes, fewer than {SECRET_BYTES_MIN}; delete it, and "
            f"`sojourn secret {typed(path)}` writes a better one."
        )
    return secret
