"""What a process notes about copies is safe when it says so, and a copy that is not there does not count."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from sojourn.broker.seats import effects as do
from sojourn.live.seats import folders as module
from sojourn.live.seats.chamber import Chamber
from sojourn.live.seats.folders import Folders


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """Return what becomes known of renames and of folders that are made safe, in order."""
    happened: list[tuple[str, Path]] = []
    rename, replace, sync = Path.rename, Path.replace, os.fsync

    def renamed(self: Path, target: Path) -> Path:
        happened.append(("rename", Path(target).parent))
        return rename(self, target)

    def replaced(self: Path, target: Path) -> Path:
        happened.append(("rename", Path(target).parent))
        return replace(self, target)

    def synced(file: int) -> None:
        happened.append(("sync", Path(f"/proc/self/fd/{file}").readlink()))
        sync(file)

    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(os, "fsync", synced)
    return happened


def test_notes_and_copies_are_under_their_names_before_anybody_relies_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After power fails a process finds what it noted last: an older note looks as good as the last one."""
    folders = Folders("B1", str(tmp_path / "B1"), power_safe=True)
    folders.read_register(("B1", "B2"))
    happened = watched(monkeypatch)
    folders.save_register(b"{}")
    assert happened[-2:] == [("rename", tmp_path / "B1.copies"), ("sync", tmp_path / "B1.copies")]
    for name, folder in (("B2", tmp_path / "B1.copies"), ("B1", tmp_path)):
        folders.take(name, 1, 0)
        happened.clear()
        folders.install(name)
        assert ("sync", folder) in happened[happened.index(("rename", folder)) :]
    folders.close()


def test_a_copy_that_cannot_take_its_place_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the one before it would count as whole at the next start."""
    folders = Folders("B1", str(tmp_path / "B1"), power_safe=False)
    folders.read_register(("B1", "B2"))
    folders.take("B2", 1, 0)
    lost: list[str] = []
    chamber = SimpleNamespace(folders=folders, council=SimpleNamespace(has_lost=lost.append))

    def refused(_path: Path) -> None:
        raise OSError(5, "it cannot be read or written")

    monkeypatch.setattr(module, "sync_folder", refused)
    with pytest.raises(OSError, match="read or written"):
        Chamber._install(chamber, do.Install("B2"))  # type: ignore[arg-type]  # it needs these two alone
    assert lost == ["B2"]
    folders.close()
