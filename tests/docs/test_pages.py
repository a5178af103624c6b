"""Every page of the documentation is followed word for word, and prints what it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.terminals import LANGUAGES, Reader, blocks, pattern, steps
from tests.live.mosquitto import MOSQUITTO

ROOT = Path(__file__).parent.parent.parent
PAGES = {str(path.relative_to(ROOT / "docs")): path for path in sorted((ROOT / "docs").rglob("*.md"))}
LONG = {"guides/spark.md", "guides/stream.md"}
"""Pages that start Spark."""
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
BESIDE_MOSQUITTO = {"guides/mosquitto.md"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in PAGES]
)
def test_a_page_does_what_it_says(name: str, tmp_path: Path) -> None:
    """Each command and program runs, and prints what stands below it."""
    if name in BESIDE_MOSQUITTO and (MOSQUITTO is None or shutil.which("mosquitto_pub") is None):
        pytest.skip("scripts/setup installs Mosquitto")
    Reader(tmp_path).follow(PAGES[name].read_text())


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_it_is(name: str) -> None:
    """A block without a language, or with one that nobody runs, would not be tested."""
    page = PAGES[name].read_text()
    found = blocks(page)
    assert {block.language for block in found} <= LANGUAGES
    assert page.count("\n```") == 2 * len(found), "each fence begins at the margin and ends"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_in_a_clone(name: str) -> None:
    """To a file that is there, or to the reference, which is made from code and named as such."""
    made = re.findall(r'"(reference/[^"]+)": ', (ROOT / "scripts" / "docs" / "hook.py").read_text())
    reference = {(ROOT / "docs" / one).resolve() for one in made}
    assert len(reference) == 5
    page = PAGES[name].read_text()
    for link in LINK.findall(page):
        path = (PAGES[name].parent / link).resolve()
        assert path.exists() or path in reference, link
        assert path not in reference or "`make docs`" in page, (
            f"who reads {name} is told where {link} is from"
        )


def test_what_differs_is_noticed(tmp_path: Path) -> None:
    """The tests of pages can fail: by other words, by words too many, by an exit code, by a program."""
    for page in (
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ echo one; echo two\none\n```\n",
        "```console\n$ false\n```\n",
        "```python\nprint(1)  # 2\n```\n",
    ):
        folder = tmp_path / str(hash(page))
        folder.mkdir()
        with pytest.raises(AssertionError):
            Reader(folder).follow(page)


def test_a_page_is_read_as_people_read_it() -> None:
    """Commands go on with `>`, dots stand for what varies, blocks know their terminals."""
    assert [*steps("$ cat <<E\n> a\n> E\na\n$ true\n")] == [("cat <<E\na\nE", ["a"]), ("true", [])]
    assert [*steps("more\n")] == [(None, ["more"])]
    assert pattern(["a…b"]) == r"a.*b[ ]*\n"
    assert blocks('```console title="two"\n$ x\n```\n') == [("console", "two", "$ x\n")]
