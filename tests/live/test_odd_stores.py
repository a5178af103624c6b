"""What is in a store's folder and is no file is refused at the start, and not waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sojourn.errors import SojournError
from sojourn.live.store.folder import StoreFolder


@pytest.mark.parametrize("name", ["journal.1", "snapshot.1", "about", "lock", "reserve", "old-journal.1"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_store_with_what_is_no_file_is_refused(name: str, make: object, tmp_path: Path) -> None:
    """In one sentence that names it."""
    StoreFolder.taken(tmp_path / "store", "B1").close()
    odd = tmp_path / "store" / name
    odd.unlink(missing_ok=True)
    assert callable(make)
    make(odd)
    with pytest.raises(SojournError, match=f"{name} is no regular file"):
        StoreFolder.taken(tmp_path / "store", "B1")


def test_a_pipe_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """The same."""
    os.mkfifo(tmp_path / "store")
    with pytest.raises(SojournError, match="neither a folder nor a file"):
        StoreFolder.taken(tmp_path / "store", "B1")
