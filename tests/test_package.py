"""What is uploaded: a wheel with the package and nothing else, and a source archive that builds the same."""

from __future__ import annotations

import email
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import sojourn
from sojourn.cli.commands import COMMANDS
from sojourn.errors import LIBRARIES

ROOT = Path(__file__).parent.parent
BUILD_S = 240
WHEEL_BYTES_MAX = 2_000_000
PRODUCT_BENCHMARKS = {f"sojourn/cli/bench_{name}.py" for name in ("manet", "match", "simulate")}
WORKSHOP = (
    "sojourn/cli/bench_",
    "sojourn/cli/check_fuzz",
    "sojourn/cli/check_live",
    "sojourn/cli/check_replay",
    "sojourn/cli/check_replicas",
    "sojourn/sim/live_check/",
)
BUILT_FROM = (
    "src",
    "tests",
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".hypothesis")


def build(source: Path, kind: str, out: Path) -> Path:
    """Build a wheel or a source archive with the backend that the project names, without a network."""
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=source, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel and a source archive of what is in the tree."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=LEFT_OUT)
        else:
            shutil.copy(ROOT / name, source / name)
    return build(source, "wheel", out), build(source, "sdist", out)


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def about(wheel: Path) -> Message:
    """What a wheel says of itself."""
    (metadata,) = (data for name, data in contents(wheel).items() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(metadata)


def test_the_wheel_has_every_file_of_the_package(built: tuple[Path, Path]) -> None:
    """Code, types, claims, pages; neither tests, benchmarks beside peers, nor worlds that break brokers."""
    wheel, archive = built
    folder = ROOT / "src" / "sojourn"
    ours = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    expected = {f"sojourn/{path.relative_to(folder)}" for path in ours}
    workshop = {name for name in expected if name.startswith(WORKSHOP)} - PRODUCT_BENCHMARKS
    found = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert found == expected - workshop
    with tarfile.open(archive) as files:
        sources = {name.partition("/src/")[2] for name in files.getnames()}
    assert workshop <= sources, "who has the sources has them"
    assert {"sojourn/cli/bench_live.py", "sojourn/sim/live_check/world.py"} <= workshop
    assert wheel.stat().st_size < WHEEL_BYTES_MAX


def test_the_wheel_brings_the_command(built: tuple[Path, Path]) -> None:
    """`sojourn` is on the path once it is installed."""
    (entries,) = (data for name, data in contents(built[0]).items() if name.endswith("entry_points.txt"))
    assert entries.decode().split() == ["[console_scripts]", "sojourn", "=", "sojourn.cli.main:main"]


def test_the_wheel_asks_for_little(built: tuple[Path, Path]) -> None:
    """No large library unless an extra is asked for, and each extra that a sentence names is there."""
    metadata = about(built[0])
    assert (metadata["Name"], metadata["Version"]) == ("sojourn", sojourn.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "# Sojourn" in metadata.get_payload()
    always = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert not [one for one in always if one.startswith(tuple(LIBRARIES))]
    extras = set(metadata.get_all("Provides-Extra", []))
    assert {"spark", "studies", "bench", "all"} <= extras
    assert {one.extra for one in COMMANDS.values() if one.extra} | {
        extra for _, extra in LIBRARIES.values()
    } <= extras


def test_the_source_archive_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    """File by file."""
    wheel, archive = built
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert {"README.md", "LICENSE", "pyproject.toml", "src"} <= {path.name for path in source.iterdir()}
    again = build(source, "wheel", tmp_path)
    unlike = [name for name, data in contents(again).items() if contents(wheel).get(name) != data]
    assert [name for name in unlike if not name.endswith("RECORD")] == []
    assert contents(again).keys() == contents(wheel).keys()
