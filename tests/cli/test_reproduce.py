import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sojourn.cli.main import main
from sojourn.cli.reproduce import reproduce
from sojourn.errors import SojournError
from sojourn.studies.claims import claims_of

APP = typer.Typer()
APP.command()(reproduce)


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(APP, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_smoke_study_end_to_end(tmp_path: Path) -> None:
    """The smoke scale runs every experiment on Spark and writes tables, figures, claims and report."""
    text = _run("publisher-mobility", "--scale=smoke", "--master=local[2]", f"--out={tmp_path}")
    assert "A-fig5b-collapse" in text
    verdicts = json.loads((tmp_path / "claims.json").read_text())
    assert [verdict["id"] for verdict in verdicts] == list(claims_of("publisher-mobility"))
    for name in ("runs.parquet", "metrics.parquet", "report.html", "figures/figure-5b.html"):
        assert (tmp_path / name).stat().st_size > 1000
    report = (tmp_path / "report.html").read_text()
    assert 'src="http' not in report
    assert all(f'id="{verdict["id"]}"' in report for verdict in verdicts)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["weather"], "study may be publisher-mobility"),
        (["publisher-mobility", "--scale=huge"], "scale may be smoke, quick, paper"),
        (["publisher-mobility", "--master=local", "--workers=2"], "exclude each other"),
    ],
)
def test_bad_option_is_one_sentence(arguments: list[str], sentence: str) -> None:
    """A bad study, scale or master ends in one sentence."""
    with pytest.raises(SojournError, match=sentence):
        _run(*arguments)


@pytest.mark.parametrize(
    ("options", "sentence"), [([], "goes on from there"), (["--workers=2"], "begins anew")]
)
def test_ctrl_c_is_one_sentence_that_says_how_to_go_on(
    options: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """No traceback, the exit code of an interrupted program, and whether finished runs are kept."""

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sojourn.cli.reproduce._run", interrupted)
    monkeypatch.setattr("sys.argv", ["sojourn", "reproduce", "handoff", f"--out={tmp_path}", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("sojourn: Interrupted.")
    assert last.endswith(f"{sentence}.")
