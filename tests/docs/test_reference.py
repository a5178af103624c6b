"""Generated pages say what the code says, all of it, and leave nothing unexplained."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

import sojourn
from sojourn.cli.commands import COMMANDS
from sojourn.live.config import Config
from sojourn.mqtt.limits import Limits
from sojourn.pipeline.schemas import TRACE
from tests.docs.building import script

ROOT = Path(__file__).parents[2]
TRANSITIONS = re.compile(r"^[A-Z_]+: dict\[tuple\[[A-Z]\w+, [A-Z]\w+\], \w+\] = \{", re.MULTILINE)
"""How a table of what follows in which state is declared."""


def test_every_setting_is_there_with_default_and_words() -> None:
    """A key that nobody explained in its class would be an empty cell."""
    reference = script("settings_reference")
    page = reference.page()
    for place, kind in reference.tables(Config):
        assert f"## `{place}`" in page
        for name, what, _, _, about in reference.rows(kind):
            assert what, name
            assert about, f"{place} {name} has no docstring"
    limit = msgspec.structs.fields(Limits)[0]
    assert f"| `{limit.name}` | whole number, at least 1 | `{limit.default}` |" in page
    assert "| `keep_alive_max_s` | whole number, from 0 to 65535 | `60` | seconds |" in page
    assert '| `certificates` | `"ignored"`, `"optional"`, `"required"` | `"ignored"` |' in page
    assert "| `listen` | string | must be given |" in page


def test_every_command_is_there_with_its_options() -> None:
    """Also those below others."""
    page = script("commands_reference").page()
    for name, command in COMMANDS.items():
        assert f"## `sojourn {name}`" in page
        if command.where.endswith(":app"):
            assert f"### `sojourn {name} " in page
    assert "| `--json` |" in page
    assert "| `--keep` | `3600` |" in page
    assert "[bold]" not in page


def test_every_metric_is_there() -> None:
    """With the name that Prometheus finds it by."""
    page = script("metrics_reference").page()
    assert "| `sojourn_published_total` | counter |" in page
    assert "| `sojourn_link_up` | gauge | `peer` |" in page
    assert "| `sojourn_handoffs_total` | counter | `complete`, `how`, `origin` |" in page
    assert "| `sojourn_journal_bytes` |" in page, "the broker that is asked has a store"


def test_every_table_and_column_of_a_trace_is_there() -> None:
    """With the words for each table and column that the code declares them with."""
    reference = script("trace_reference")
    page = reference.page()
    for name, schema in TRACE.items():
        section = page.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == schema.fieldNames()
    assert "| `duration_s` | double | how long it was; null while it goes on |" in page
    assert "## `outcomes`" in page


def test_every_public_name_is_there() -> None:
    """With how it is called."""
    page = script("python_reference").page()
    for name in set(sojourn.__all__) - {"__version__"}:
        assert f"\n## `{name}`\n" in page
    assert "### `Client.move_to`" in page
    assert "session_expiry_s: 'int' = 3600" in page or "session_expiry_s: int = 3600" in page
    assert page.count("```") % 2 == 0


def test_diagrams_show_every_way_between_states() -> None:
    """An arrow for each pair of states that some fact leads between, and a cell for each row."""
    diagrams = script("diagrams")
    for name, table in diagrams.TABLES.items():
        follows = {key: getattr(after, "state", after) for key, after in table.items()}
        pairs = {(state, after) for (state, _), after in follows.items() if after is not state}
        assert diagrams.picture(name).count('marker-end="') == len(pairs)
        rows = diagrams.facts_table(name).splitlines()[2:]
        cells = [cell.strip() for row in rows for cell in row.split("|")[2:]]
        assert len([cell for cell in cells if cell.isupper()]) == len(table)
        assert set(diagrams.moves(name)) == {(one.name, other.name) for one, other in pairs}


def test_every_transition_table_is_drawn_in_a_page() -> None:
    """What follows in which state is a table in the code; each has its picture, and the picture its page."""
    package = ROOT / "src" / "sojourn"
    tables = {
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in package.rglob("*.py")
        if TRANSITIONS.search(path.read_text("utf-8"))
    }
    assert tables == set(script("diagrams").TABLES)
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert all(f"<!-- states: {name} -->" in pages for name in tables)
