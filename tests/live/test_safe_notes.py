"""What a process notes about copies is safe when it says so, and a copy that is not there does not count."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from sojourn.broker.records import write_batch, write_snapshot
from sojourn.broker.seats import effects as do
from sojourn.live.seats import folders as module
from sojourn.live.seats.chamber import Chamber
from sojourn.live.seats.folders import Folders
from sojourn.live.store import generations
from sojourn.live.store.folder import StoreFolder


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


def test_a_large_copy_is_looked_at_as_it_comes_and_never_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read it whole when its last part is there would keep everybody waiting; what is damaged is read."""
    read_whole: list[int] = []
    sound_first = generations.sound_first

    def looked(folder: StoreFolder) -> int:
        read_whole.append(sound_first(folder))
        return read_whole[-1]

    monkeypatch.setattr(generations, "sound_first", looked)
    monkeypatch.setattr(module, "SAFE_BYTES", 100)
    state = os.urandom(1_000)
    for name, sent in (("B2", write_snapshot(5, state)), ("B3", write_snapshot(5, state)[:-1] + b"!")):
        folders = Folders("B1", str(tmp_path / name / "B1"), power_safe=True)
        folders.read_register(("B1", name))
        folders.take(name, 5, len(sent))
        for at in range(0, len(sent), 300):
            folders.take_part(name, sent[at : at + 300])
        folders.append(name, 5, write_batch(5, [b"entry"]))
        folders.install(name)
        assert bool(read_whole) == (name == "B3"), "only what is not what was sent"
        assert folders.next(name) == 6
        assert (folders.path(name) / "snapshot.5").read_bytes() == sent
        folders.close()
