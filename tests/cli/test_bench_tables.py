"""The tables of benchmarks on a narrow terminal."""

import pytest

from sojourn.cli.bench import _show


def test_no_figure_is_cut_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than fit beside one another come in several tables."""
    monkeypatch.setenv("COLUMNS", "80")
    rows = [{"row": f"{100 * number} nodes, b-gpsr-map", "seconds": number + 0.25} for number in range(1, 15)]
    _show("manet", rows)
    printed = capsys.readouterr().out
    assert all(str(row["row"]) in printed for row in rows)
    assert "\u2026" not in printed
    assert max(map(len, printed.splitlines())) <= 80
