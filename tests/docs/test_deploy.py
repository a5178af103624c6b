"""What `deploy/` holds works: three brokers by its files, metrics that exist, manifests that are valid."""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import shutil
import ssl
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sojourn import Client, RefusedError
from sojourn.live.config import load_config
from tests.docs.terminals import Terminal, own_host

yaml = pytest.importorskip("yaml", reason="`make setup` installs it")
DEPLOY = Path(__file__).parent.parent.parent / "deploy"
NAMES = ("b1", "b2", "b3")
WORDS = {
    "sum",
    "max",
    "offset",
    "or",
    "by",
    "broker",
    "kind",
    "rate",
    "histogram_quantile",
    "up",
    "instance",
    "reason",
    "le",
    "peer",
    "complete",
    "job",
    "label_values",
    "humanize",
}
WAIT_S = 120
DOORS = ("listen", "listen_tls", "peers", "seats", "metrics")
"""Keys of a broker with a port each."""


def prepared(folder: Path, *more: str) -> str:
    """What the program says that writes a network's files."""
    done = subprocess.run(
        [sys.executable, str(DEPLOY / "prepare.py"), str(folder), *more],
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["net", "--brokers", "votes=1.2.3.4", "b", "c"], "no broker is called 'votes'"),
        (["net", "--brokers", "a/b=1.2.3.4"], "'a/b' is the name of files too"),
        (["net", "--brokers", '"a'], "has a quote"),
        (["net", "--brokers", "a" * 65], "no certificate can name the broker"),
        (["net", "--brokers", "a=b\u00fcro"], "no certificate can name the broker"),
        (["net", "--brokers", "a=1.2.3.4:1883"], "without a port"),
        (["net", "--brokers", "a=one", "b=one"], "listen of a and listen of b are both"),
        (["here/net"], "cannot be written"),
        ([""], "the folder has no name"),
    ],
)
def test_what_cannot_be_prepared_is_refused_before_anything_is_written(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    """In a sentence, by the rules of brokers, certificates and folders."""
    (tmp_path / "here").write_text("a file")
    done = subprocess.run(
        [sys.executable, str(DEPLOY.absolute() / "prepare.py"), *words], cwd=tmp_path,
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout
    assert sentence in done.stderr.splitlines()[-1]
    assert [one.name for one in tmp_path.iterdir()] == ["here"]


class Network:
    """The three brokers of the Compose file, each on an address of its own instead of in a container."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "network"
        said = prepared(self.folder, "--stores", str(folder / "stores"), "--control", str(folder / "control"))
        found = re.search(r"with the password (\S+),", said)
        assert found is not None
        self.password = found[1]
        self.hosts = {name: own_host() for name in NAMES}
        file = self.folder / "network.toml"
        before, *tables = file.read_text().split("[[brokers]]\n")
        for number, name in enumerate(NAMES):
            host = self.hosts[name]
            tables[number] = tables[number].replace("0.0.0.0", host).replace(f'"{name}:', f'"{host}:')  # noqa: S104 - a text
        file.write_text("[[brokers]]\n".join([before, *tables]))

    def client(self, broker: str, name: str) -> Client:
        """The operator, by TLS."""
        context = ssl.create_default_context(cafile=self.folder / "certificates" / "authority.pem")
        context.check_hostname = False  # certificates name the hosts of containers
        return Client(
            f"mqtts://{self.hosts[broker]}:8883", client_id=name, username="operator", password=self.password,
            tls=context,
        )  # fmt: skip

    async def linked(self, broker: str) -> None:
        """Wait until a broker at the end of the line has its link."""
        while 'sojourn_link_up{peer="b2"} 1.0' not in await asyncio.to_thread(self.metrics, broker):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.2)

    def metrics(self, broker: str) -> str:
        """What the broker serves."""
        with urllib.request.urlopen(f"http://{self.hosts[broker]}:9883/metrics", timeout=60) as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """The three brokers, running as the Compose file runs them."""
    folder = tmp_path_factory.mktemp("deploy")
    built = Network(folder)
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    with ExitStack() as ends:
        terminals = []
        for name in NAMES:
            terminal = Terminal(folder, folder, "no host to replace")
            ends.callback(terminal.stop)
            arguments = " ".join(compose["services"][name]["command"])
            terminal.type(f"sojourn serve network/network.toml {arguments}")
            terminals.append(terminal)
        for name, terminal in zip(NAMES, terminals, strict=True):
            terminal.wait_for(["…", f"sojourn: broker {name} listens on …"], to_the_end=False)
        yield built


def test_three_brokers_link_by_certificate_and_serve_by_tls(network: Network) -> None:
    """A client at the first gets what is published at the last, and without a name nobody comes in."""

    async def scenario() -> None:
        async with network.client("b1", "near") as near, network.client("b3", "far") as far:
            await network.linked("b1")
            await network.linked("b3")
            await near.subscribe("floor = 3")
            await far.publish("doors", {"floor": 3})
            assert (await near.next(timeout_s=WAIT_S)).attributes["floor"] == 3
        with pytest.raises(RefusedError):
            await Client(f"mqtt://{network.hosts['b2']}:1883", client_id="nobody").connect()

    asyncio.run(asyncio.wait_for(scenario(), WAIT_S))


def names_in(expression: str) -> set[str]:
    """The metrics that an expression of Prometheus speaks of."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"", "", expression)
    return {word for word in re.findall(r"[a-z_]{2,}", bare) if word not in WORDS}


def test_alerts_and_dashboard_speak_of_metrics_that_are_served(network: Network) -> None:
    """Also of their labels; families without a value yet are known by their TYPE line."""
    served = network.metrics("b2")
    families = set(re.findall(r"^# TYPE (\S+)", served, re.MULTILINE))
    families |= {f"{name}_bucket" for name in re.findall(r"^# TYPE (\S+) histogram", served, re.MULTILINE)}
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    board = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    expressions = [rule["expr"] for rule in rules]
    expressions += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    expressions += [one["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    spoken = set.union(*map(names_in, expressions))
    assert spoken <= families, spoken - families
    assert len(spoken) > 15
    alarming = set.union(*(names_in(rule["expr"]) for rule in rules))
    assert {"sojourn_lost_stores_total", "sojourn_dropped_total", "sojourn_refusing"} <= alarming
    assert names_in('rate(sojourn_nonsense_total{a="b"}[5m])') == {"sojourn_nonsense_total"}, "it can fail"
    for rule in rules:
        assert rule["annotations"].keys() == {"summary", "action"}


@pytest.fixture(scope="module")
def promtool() -> str:
    """Prometheus' own checker, which is taken out of Debian's package where it is not there."""
    found = subprocess.run(
        [DEPLOY.parent / "scripts" / "promtool"], capture_output=True, text=True, timeout=250, check=False
    )
    if found.returncode:
        pytest.skip(found.stderr.splitlines()[-1])
    return found.stdout.strip()


@pytest.mark.parametrize(
    "arguments",
    [("check", "config", "prometheus.yml"), ("test", "rules", "alerts_at_work.yml")],
    ids=" ".join,
)
def test_promtool_takes_rules_and_configuration(
    promtool: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """Expressions and templates are those of Prometheus, and alerts say what happens when it does."""
    for file in (*(DEPLOY / "prometheus").iterdir(), Path(__file__).with_name("alerts_at_work.yml")):
        shutil.copy(file, tmp_path)
    done = subprocess.run(
        [promtool, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_the_dashboard_has_whole_panels() -> None:
    """Each with a name, words, a place of its own."""
    panels = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())["panels"]
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)
    for key in ("id", "title"):
        assert len({panel[key] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)


def test_the_kubernetes_manifest_fits_the_schema() -> None:
    """Every resource, strictly: a key that Kubernetes does not know is refused."""
    validate = pytest.importorskip("kubernetes_validate", reason="`make setup` installs it")
    resources = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    assert [one["kind"] for one in resources] == ["Service", "Service", "PodDisruptionBudget", "StatefulSet"]
    for one in resources:
        validate.validate(one, "1.30", strict=True)
    wrong = {**resources[0], "spec": {**resources[0]["spec"], "clusterIp": "None"}}
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, "1.30", strict=True)


def test_manifests_agree_with_the_configuration(tmp_path: Path) -> None:
    """Ports and folders that containers open and mount are those that brokers use."""
    names = [f"sojourn-{number}=sojourn-{number}.sojourn" for number in range(3)]
    folder = tmp_path / "network"
    prepared(folder, "--brokers", *names)
    file = folder / "network.toml"
    config, raw = load_config(file), tomllib.loads(file.read_text())
    ports = {int(raw["brokers"][0][key].rpartition(":")[2]) for key in DOORS}
    state = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))[-1]["spec"]["template"]["spec"]
    container = state["containers"][0]
    assert {port["containerPort"] for port in container["ports"]} == ports
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    control = Path(str(config.network.control))
    used = {str(Path(str(config.brokers[0].store)).parent), str(control.parent), "/etc/sojourn"}
    assert mounted == used, "the folder of controls is made by its broker, in one that it need not own"
    opened = re.search(r"^EXPOSE (.*)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert opened is not None
    assert ports < set(map(int, opened[1].split()))
    again = prepared(folder, "--brokers", *names, "sojourn-3")
    assert again == "", "what is there stays"
    assert (folder / "certificates" / "sojourn-3.pem").exists()


def test_the_key_of_the_authority_goes_to_no_host(tmp_path: Path) -> None:
    """It is beside the folder that does, for its owner alone, and no container mounts more than it needs."""
    folder = tmp_path / "network"
    prepared(folder)
    assert (tmp_path / "network-authority.key").stat().st_mode & 0o077 == 0
    assert not [one for one in folder.rglob("*.key") if one.stem not in NAMES]
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        mounted = [one.partition(":")[0] for one in service["volumes"]]
        assert [one for one in mounted if one.endswith(".key")] == [f"./network/certificates/{name}.key"]
        assert all((folder.parent / one).is_file() for one in mounted if one != "./stores")


def test_a_broker_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """As by a shell that spells out `b{1,2}=host{1,2}`: otherwise the last host would be everybody's."""
    command = [sys.executable, str(DEPLOY / "prepare.py"), str(tmp_path / "network"), "--brokers"]
    done = subprocess.run(
        [*command, "b1=host1", "b1=host2"], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 2
    assert "the broker 'b1' is named twice" in done.stderr
    assert not (tmp_path / "network").exists()


def test_the_compose_file_publishes_on_loopback_only() -> None:
    """Whoever wants more has to say so."""
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert tuple(services) == NAMES
    published = [port for one in services.values() for port in one["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len({port.rsplit(":", 1)[0] for port in published}) == len(published), "each has its own"
    for one in services.values():
        assert one["build"]["dockerfile"] == "deploy/Containerfile"


def test_the_image_gets_what_it_copies_and_nothing_else() -> None:
    """No key, store or environment of whoever builds it; what is compiled has a place beside the stores."""
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]}
    sources = {word for word in copied if not word.startswith(("--from", "/"))}
    ignore = (DEPLOY.parent / ".dockerignore").read_text().splitlines()
    rules = [line for line in ignore if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == sources
    assert any("NUMBA_CACHE_DIR=/var/lib/sojourn/" in line for line in lines)
    assert "NUMBA_CACHE_DIR=%S/sojourn/" in (DEPLOY / "sojourn@.service").read_text()


def test_the_unit_starts_a_broker_of_the_file() -> None:
    """With options that exist, and folders that the configuration names."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # for this test
    unit.read(DEPLOY / "sojourn@.service")
    start = unit["Service"]["ExecStart"].split()
    assert start[1:] == ["serve", "/etc/sojourn/network.toml", "--broker", "%i"]
    folders = [unit["Service"][f"{kind}Directory"] for kind in ("State", "Runtime", "Logs")]
    assert folders == ["sojourn"] * 3


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd")
def test_systemd_knows_every_key_of_the_unit(tmp_path: Path) -> None:
    """It says nothing about the file, and something about one with a key that is misspelt."""
    text = (DEPLOY / "sojourn@.service").read_text().replace("/opt/sojourn/bin/sojourn", sys.executable)
    said = []
    for name, unit in (("good", text), ("bad", text.replace("Restart=", "Restrat="))):
        file = tmp_path / f"sojourn@{name}.service"
        file.write_text(unit)
        done = subprocess.run(
            ["systemd-analyze", "verify", str(file)],  # noqa: S607 - from the path, as a user has it
            capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
        said.append([line for line in done.stderr.splitlines() if file.name in line])
    assert said[0] == []
    assert "Restrat" in said[1][0]
