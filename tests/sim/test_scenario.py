from pathlib import Path

import pytest

from sojourn.errors import SojournError
from sojourn.sim.scenario import PROTOCOLS, Scenario, ScenarioError, factors, load_values, scenario_from
from sojourn.sim.streams import Streams


def test_defaults_are_table_4() -> None:
    """A scenario left alone is the paper's common setting."""
    scenario = scenario_from({})
    assert (scenario.tree_height, scenario.tree_degree) == (4, 4)
    assert (scenario.link_bandwidth_bps, scenario.link_latency_ms) == (10e6, 2)
    assert (scenario.client_bandwidth_bps, scenario.client_latency_ms) == (128e3, 2)
    assert (scenario.publishers, scenario.subscribers, scenario.proxies) == (50, 500, 5)
    assert (scenario.speeds_kmh, scenario.broker_width_km) == ((5, 50, 100), 0.5)
    assert (scenario.disconnection_s, scenario.unadvertise_delay_s) == (3, 10)


def test_every_factor_is_explained() -> None:
    """The list of factors has a group, a sentence and a default for each field of the structure."""
    table = factors()
    assert [factor.name for factor in table] == list(Scenario.__struct_fields__)
    for factor in table:
        assert factor.group
        assert factor.explanation.endswith(".")
        if factor.name.rsplit("_", 1)[-1] in {"s", "ms", "km", "bps", "kmh", "bytes"}:
            assert factor.unit


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"protocol": "telepathy"}, "protocol may be standard"),
        ({"protocol": "proxy+telepathy"}, "protocol may be standard"),
        ({"brokers": 0}, "brokers must be 1 or more, not 0."),
        ({"tree_height": 0}, "tree_height must be 1 or more"),
        ({"publishers": 0}, "publishers must be 1 or more"),
        ({"unadvertise_delay_s": -1}, "unadvertise_delay_s must be 0 or more, not -1."),
        ({"link_latency_ms": float("nan")}, "link_latency_ms must be 0 or more"),
        ({"link_bandwidth_bps": 0}, "link_bandwidth_bps must be more than 0"),
        ({"prediction": 1.5}, "prediction must lie between 0 and 1, not 1.5."),
        ({"computations": "slow"}, "computations may be none, fast, complex, measured, not 'slow'."),
        ({"computations": "measured"}, "calibration_file must name"),
        ({"topology": "file"}, "topology_file must name"),
        ({"movement": "teleport"}, "movement may be"),
        ({"speeds_kmh": []}, "speeds_kmh must hold"),
        ({"speeds_kmh": [5, -5]}, "speeds_kmh must hold"),
        ({"speeds_kmh": [900]}, "disconnection_s must be shorter than the 2 s"),
        ({"publishers": "many"}, "publishers has a value of the wrong type"),
        ({"publsihers": 3}, "publsihers is no parameter"),
    ],
)
def test_bad_parameter_is_one_sentence(values: dict[str, object], sentence: str) -> None:
    """A value without meaning is refused by a sentence that names its parameter."""
    with pytest.raises(ScenarioError) as caught:
        scenario_from(values)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_protocols_are_compositions(protocol: str) -> None:
    """Each named protocol is a set of policies, standard the empty one."""
    policies = scenario_from({"protocol": protocol}).policies
    assert (policies == frozenset()) == (protocol == "standard")
    assert ("delayed" in policies) == ("delayed" in protocol)
    assert ("prefetching" in policies) == ("prefetch" in protocol)


def test_scenario_file(tmp_path: Path) -> None:
    """A TOML file gives values; one that is missing or broken is told in a sentence."""
    path = tmp_path / "city.toml"
    path.write_text('protocol = "delayed"\nspeeds_kmh = [30]\n')
    assert scenario_from(load_values(path)).speeds_kmh == (30,)
    path.write_text("protocol = ")
    with pytest.raises(SojournError, match="is not TOML"):
        load_values(path)
    with pytest.raises(SojournError, match="cannot be read"):
        load_values(tmp_path / "nowhere.toml")


def test_streams_do_not_depend_on_order() -> None:
    """A stream is its seed, name and index, whatever else was drawn before."""
    one, other = Streams(7), Streams(7)
    one.get("movement").random(10)
    assert one.get("network", 3).random() == other.get("network", 3).random()
    assert other.get("network", 3).random() != other.fresh("network", 3).random()
    assert Streams(8).get("network", 3).random() != Streams(7).get("network", 3).random()
