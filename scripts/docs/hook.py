"""What mkdocs calls when it builds the site: adds the pages and pictures that are made from code.

Nothing that is generated is kept in the repository, so nothing of it can be out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))  # mkdocs loads this file by its path, and not its neighbours

import commands_reference  # noqa: E402 - after the path is set
import diagrams  # noqa: E402 - after the path is set
import metrics_reference  # noqa: E402 - after the path is set
import python_reference  # noqa: E402 - after the path is set
import settings_reference  # noqa: E402 - after the path is set
import trace_reference  # noqa: E402 - after the path is set
from mkdocs.structure.files import File, Files  # noqa: E402 - after the path is set

PAGES = {
    "reference/configuration.md": settings_reference.page,
    "reference/command-line.md": commands_reference.page,
    "reference/metrics.md": metrics_reference.page,
    "reference/trace.md": trace_reference.page,
    "reference/python.md": python_reference.page,
}
"""Pages that are made from code."""
COPIED = {"security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}
"""Pages that stand at the top of the repository; links to them lead there in a clone."""
_TO_COPIED = re.compile(rf"\]\(((?:\.\./)*)\.\./({'|'.join(COPIED.values())})(#[^)]*)?\)")
_FIGURE = re.compile(r"<!-- states: (\S+) -->")


def on_files(files: Files, config: Any) -> Files:
    """Add what is not in the folder."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    for path, name in COPIED.items():
        files.append(File.generated(config, path, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, **_context: Any) -> str:
    """Draw the states of protocols where a page asks for them, and lead to the site's own pages."""
    names = {name: path for path, name in COPIED.items()}
    markdown = _TO_COPIED.sub(lambda found: f"]({found[1]}{names[found[2]]}{found[3] or ''})", markdown)
    return _FIGURE.sub(lambda found: diagrams.figure(found[1]), markdown)
