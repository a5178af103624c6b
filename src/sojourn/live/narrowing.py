"""Files and folders that are for their owner alone, also where they were there before with wider modes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

OTHERS = 0o077
"""The bits of a mode that let anybody but the owner do anything."""


def narrow_folder(path: Path) -> None:
    """Take from others what they may do in a folder of this process's user.

    One of another user, or that all users share (as `/tmp`), stays as it is: files have modes of their own.
    """
    found = path.stat()
    if found.st_mode & OTHERS and found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX:
        path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)


def narrow_file(file: int) -> None:
    """Take from others what they may do with an open file, or raise OSError where only another user may."""
    mode = os.fstat(file).st_mode
    if mode & OTHERS:
        os.fchmod(file, stat.S_IMODE(mode) & ~OTHERS)
