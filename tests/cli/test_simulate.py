import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from sojourn.cli.simulate import KINDS
from sojourn.cli.simulate import app as APP  # noqa: N812 - as in the other tests
from sojourn.errors import SojournError
from sojourn.sim.scenario import factors

SMALL = [
    "publisher-mobility",
    "--publishers=6",
    "--subscribers=20",
    "--warmup-s=5",
    "--duration-s=30",
    "--speeds-kmh=100",
]


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(APP, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_explains_every_factor() -> None:
    """--list names each parameter with its default and explanation, for people and for programs."""
    for world, kind in KINDS.items():
        rows = json.loads(_run(world, "--list", "--json"))
        assert [row["name"] for row in rows] == [factor.name for factor in factors(kind)]
    assert list(json.loads(_run("--list", "--json"))) == list(KINDS)
    text = _run("--list")
    assert all(factor.name in text for kind in KINDS.values() for factor in factors(kind))


def test_run_is_repeatable_json() -> None:
    """The same options give the same measures; only the wall time differs."""
    one, other = (json.loads(_run(*SMALL, "--json", "--protocol=delayed")) for _ in range(2))
    one.pop("wall_s"), other.pop("wall_s")
    assert one == other
    assert one["moves"] > 0
    assert one["rebuild_ms"] > 0


def test_scenario_file_and_options(tmp_path: Path) -> None:
    """Options override the file, and the file the defaults."""
    path = tmp_path / "city.toml"
    path.write_text(
        'publishers = 6\nsubscribers = 20\nwarmup_s = 5\nduration_s = 30\nprotocol = "standard"\n'
    )
    arguments = ("publisher-mobility", "--scenario", str(path), "--speeds-kmh=100", "--json")
    standard = json.loads(_run(*arguments))
    delayed = json.loads(_run(*arguments, "--protocol=delayed"))
    assert standard["moves"] == delayed["moves"]
    assert standard["messages_per_min"] > delayed["messages_per_min"]


def test_watch_shows_the_city() -> None:
    """The view counts publishers, lights brokers and lists the latest moves, and the measures follow."""
    text = _run(*SMALL, "--protocol=delayed", "--watch", "--pace=0")
    assert "publishers at each leaf, west to east" in text
    assert "latest moves" in text
    assert "advertise" in text
    assert "rebuild ms" in text


def test_a_roaming_run_and_its_trace(tmp_path: Path) -> None:
    """Roaming subscribers are one command; the trace holds as many deliveries as were made."""
    arguments = ("roaming", "--subscribers=20", "--warmup-s=0", "--duration-s=20", "--connect-s=5", "--json")
    measured = json.loads(_run(*arguments, f"--trace={tmp_path}"))
    assert measured["throughput"] > 0
    assert measured["duplicates_percent"] == 0
    tables = {path.name for path in tmp_path.iterdir()}
    assert {"runs", "publications", "deliveries", "sojourns", "handoffs", "interests"} <= tables
    arrived = pq.read_table(tmp_path / "deliveries")["time_s"].to_numpy()
    assert (arrived < 20).sum() == round(measured["throughput"] * 20)


def test_traces_of_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    """Another scenario is another run of the trace; the same one replaces itself."""
    for seed in (1, 2, 2):
        _run(*SMALL, f"--seed={seed}", f"--trace={tmp_path}", "--json")
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["publisher-mobility", "--protocol=telepathy"], "protocol may be"),
        (["publisher-mobility", "--topology=chain", "--brokers=0"], "brokers must be 1 or more"),
        (["publisher-mobility", "--unadvertise-delay-s=-1"], "unadvertise_delay_s must be 0 or more"),
        (["publisher-mobility", "--speeds-kmh=fast"], "speeds_kmh must be numbers"),
        (["weather"], "world may be publisher-mobility, roaming, manet, not 'weather'"),
        ([], "world may be publisher-mobility, roaming, manet, not nothing"),
        (["roaming", "--scheme=hopeful"], "scheme may be durable, reactive, proactive"),
        (["roaming", "--scheme=proactiv"], "scheme may be durable, reactive, proactive"),
        (["roaming", "--protocol=standard"], "scheme may be durable, reactive, proactive"),
        (["manet", "--protocol=standard"], "scheme may be"),
        (["roaming", "--watch"], "watch shows moving publishers only"),
        (["publisher-mobility", "--watch", "--trace=x"], "watch and trace exclude each other"),
    ],
)
def test_bad_parameter_is_one_sentence(arguments: list[str], sentence: str) -> None:
    """A bad option ends in one sentence that names it."""
    with pytest.raises(SojournError) as caught:
        _run(*arguments)
    assert str(caught.value).startswith(sentence)


def test_bad_topology_file(tmp_path: Path) -> None:
    """A topology with a link from a broker to itself, or to an unknown one, is told in a sentence."""
    path = tmp_path / "net.toml"
    for text, sentence in (
        ('links = [["a", "a"]]', "linked to itself"),
        ('brokers = ["a", "b"]\nlinks = [["a", "c"]]', "'c' is not one of them"),
    ):
        path.write_text(text)
        with pytest.raises(SojournError, match=sentence):
            _run("publisher-mobility", "--topology=file", f"--topology-file={path}")


def test_each_world_shows_its_own_options() -> None:
    """Every parameter of a world and none of another's; what some call protocol is --protocol everywhere."""
    commands = typer.main.get_command(APP).commands  # type: ignore[attr-defined]  # a group
    shown = {world: {name for one in commands[world].params for name in one.opts} for world in KINDS}
    for world, kind in KINDS.items():
        own = {f"--{factor.name.replace('_', '-')}" for factor in factors(kind)}
        assert own | {"--protocol", "--scheme", "--json", "--list"} <= shown[world]
    assert "--nodes" not in shown["roaming"] | shown["publisher-mobility"]


def test_protocol_and_scheme_are_one_option() -> None:
    """Whichever word is used."""
    small = ("roaming", "--subscribers=5", "--warmup-s=0", "--duration-s=5", "--json")
    one, other = (json.loads(_run(*small, option)) for option in ("--protocol=durable", "--scheme=durable"))
    one.pop("wall_s"), other.pop("wall_s")
    assert one == other
