"""The site builds without a warning, and a browser that opens it asks nobody else for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="`make setup` installs what builds the site")
ROOT = Path(__file__).parent.parent.parent
BUILD_S = 280
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b[^>]*\bhref=["']?(?:https?:)?//|url\(["']?(?:https?:)?//|@import\s+["'](?:https?:)?//"""
)
"""What a browser fetches by itself from another host."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "WARNING" not in done.stderr
    return folder


def test_every_page_is_in_the_menu_and_generated_ones_are_there(site: Path) -> None:
    """Strict building refuses links to nowhere; pages outside the menu nobody would find."""
    menu = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert f" {page.relative_to(ROOT / 'docs')}\n" in menu
    for name in ("configuration", "command-line", "metrics", "trace", "python"):
        assert "made from" in " ".join((site / "reference" / f"{name}.html").read_text().split())
    assert "<svg" in (site / "explanation" / "protocols.html").read_text()
    assert "handed over" in (site / "explanation" / "protocols.html").read_text()


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """Fonts, scripts, styles and pictures come with the site."""
    looked = 0
    for path in site.rglob("*"):
        if path.suffix in (".html", ".css"):
            found = LOADED.search(path.read_text())
            assert found is None, f"{path.name}: {found}"
            looked += 1
    assert looked > 10
    assert LOADED.search('<link rel="stylesheet" href="https://fonts.googleapis.com/css">'), "it can fail"
