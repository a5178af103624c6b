from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.sim.scenario import scenario_from
from sojourn.sim.topology import TopologyError, load_topology, make_topology, tree


def test_paper_tree() -> None:
    """Height 4 and degree 4 give 85 brokers with 64 leaves, neighbours in the street sharing a parent."""
    topology = make_topology(scenario_from({}))
    assert (topology.brokers, len(topology.leaves), topology.links) == (85, 64, 84)
    first, second, fifth = topology.leaves[0], topology.leaves[1], topology.leaves[4]
    assert topology.neighbours[first] == topology.neighbours[second] != topology.neighbours[fifth]


@given(height=st.integers(1, 5), degree=st.integers(1, 4))
def test_trees_are_trees(height: int, degree: int) -> None:
    """Every tree has one link fewer than brokers, symmetric links, and its last level as leaves."""
    topology = tree(height, degree)
    assert topology.links == topology.brokers - 1
    assert len(topology.leaves) == degree ** (height - 1)
    for broker, near in enumerate(topology.neighbours):
        assert all(broker in topology.neighbours[other] for other in near)


@pytest.mark.parametrize(("shape", "links"), [("chain", 5), ("ring", 6), ("star", 5)])
def test_other_shapes(shape: str, links: int) -> None:
    """Chains, rings and stars have the brokers asked for."""
    topology = make_topology(scenario_from({"topology": shape, "brokers": 6}))
    assert (topology.brokers, topology.links) == (6, links)


def test_file(tmp_path: Path) -> None:
    """A file names brokers by its links; those with one neighbour are the street unless it says otherwise."""
    path = tmp_path / "net.toml"
    path.write_text('links = [["hub", "west"], ["hub", "east"], ["hub", "north"]]')
    topology = load_topology(path)
    assert [topology.names[leaf] for leaf in topology.leaves] == ["west", "east", "north"]
    path.write_text('links = [["hub", "west"], ["hub", "east"]]\nleaves = ["east", "hub"]')
    topology = load_topology(path)
    assert [topology.names[leaf] for leaf in topology.leaves] == ["east", "hub"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('links = [["a", "a"]]', "links must join two different brokers; 'a' is linked to itself."),
        (
            'brokers = ["a", "b"]\nlinks = [["a", "c"]]',
            "links may only join the listed brokers; 'c' is not one of them.",
        ),
        (
            'links = [["a", "b"], ["c", "d"]]',
            "links must connect every broker; 'c' cannot be reached from 'a'.",
        ),
        (
            'links = [["a", "b"]]\nleaves = ["z"]',
            "leaves may only name brokers of the network; 'z' is not one of them.",
        ),
        (
            'links = [["a", "b"]]\nleaves = ["a", "a"]',
            "leaves must name each broker once, from west to east.",
        ),
        (
            'links = [["a", "b"]]\nleaves = []',
            "leaves must name at least one broker that clients can connect to.",
        ),
        ('links = ["a"]', "links must be a list of pairs"),
        ("brokers = []\nlinks = []", "brokers must name at least one broker"),
        ("links = [[", "topology_file"),
    ],
)
def test_bad_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """A topology that cannot be is refused by a sentence that names the parameter."""
    path = tmp_path / "net.toml"
    path.write_text(text)
    with pytest.raises(TopologyError) as caught:
        load_topology(path)
    assert str(caught.value).startswith(sentence)


def test_missing_file_and_limits(tmp_path: Path) -> None:
    """A file that is not there, a ring of two and a tree beyond the limit are refused."""
    with pytest.raises(TopologyError, match="cannot be read"):
        load_topology(tmp_path / "none.toml")
    with pytest.raises(TopologyError, match="brokers must be 3 or more for a ring"):
        make_topology(scenario_from({"topology": "ring", "brokers": 2}))
    with pytest.raises(TopologyError, match="at most 1000000 brokers"):
        tree(12, 4)
