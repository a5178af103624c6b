"""One simulated run, described by every factor of paper 000's section 5.1.

A scenario is data: a frozen structure whose defaults are the paper's Table 4, read from a small TOML file
or from command-line options. Each field carries its unit and a sentence, so that the structure is also the
table that `sojourn simulate --list` prints. `validate` turns a bad value into one sentence that names the
parameter and what it may be. Nothing here draws a number or builds a world.
"""

import math
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from sojourn.errors import SojournError

PROTOCOLS = ("standard", "prefetching", "proxy", "delayed", "prefetch-delayed", "proxy+delayed")
TOPOLOGIES = ("tree", "chain", "ring", "star", "file")
COMPUTATIONS = ("none", "fast", "complex", "measured")
MOVEMENTS = ("random", "walk", "route", "group", "patrol")
SPEED_DRAWS = ("publisher", "move")

POLICIES = frozenset({"prefetching", "proxy", "delayed"})
"""What a protocol may be composed of; `standard` is the empty composition."""
PREDICTORS = ("told", "order-1", "order-2")


class ScenarioError(SojournError):
    """A scenario's parameter has a value it may not have."""


def factor(group: str, unit: str, explanation: str) -> msgspec.Meta:
    """What a field of a scenario is, for `factors`."""
    return msgspec.Meta(description=explanation, extra={"group": group, "unit": unit})


AT_LEAST_ONE = (1.0, math.inf, "must be 1 or more")
POSITIVE = (math.nextafter(0, 1), math.inf, "must be more than 0")
NOT_NEGATIVE = (0.0, math.inf, "must be 0 or more")
SHARE = (0.0, 1.0, "must lie between 0 and 1")

Range = tuple[tuple[str, ...], tuple[float, float, str]]
"""Parameters; and the least and the most that they may be, in words too."""


class Described(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run described by factors; a kind of world has its own."""

    def validate(self) -> None:
        """Raise one sentence for the first parameter that has no meaning."""

    def check_choices(self, choices: Mapping[str, Collection[str]]) -> None:
        """Raise one sentence for the first of some parameters that is none of its choices."""
        for name, known in choices.items():
            value = getattr(self, name)
            if value not in known:
                raise ScenarioError(f"{name} may be {', '.join(known)}, not {value!r}.")

    def check_ranges(self, *ranges: Range) -> None:
        """Raise one sentence for the first parameter that lies without its range."""
        for names, (least, most, what) in ranges:
            for name in names:
                value = getattr(self, name)
                if not (math.isfinite(value) and least <= value <= most):
                    raise ScenarioError(f"{name} {what}, not {value:g}.")


DescribedT = TypeVar("DescribedT", bound=Described)


class Scenario(Described, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every factor of one run, with Table 4's value as its default."""

    seed: Annotated[
        int, factor("run", "", "Root of every random stream; the same seed gives the same run.")
    ] = 1
    warmup_s: Annotated[
        float, factor("run", "s", "Movement before statistics count; set-up itself happens before time 0.")
    ] = 60.0
    duration_s: Annotated[float, factor("run", "s", "Measured time after the warm-up.")] = 300.0
    protocol: Annotated[
        str,
        factor(
            "protocol",
            "",
            "What brokers do when a publisher moves: " + ", ".join(PROTOCOLS) + " (section 4).",
        ),
    ] = "standard"
    proxies: Annotated[
        int,
        factor("protocol", "brokers", "Leaves around the first one that always keep a publisher's tree."),
    ] = 5
    unadvertise_delay_s: Annotated[
        float,
        factor("protocol", "s", "How long a delayed protocol keeps the old tree after a publisher left."),
    ] = 10.0
    prediction: Annotated[
        float,
        factor("protocol", "probability", "How often a prefetching protocol is told the true next broker."),
    ] = 1.0
    predictor: Annotated[
        str,
        factor(
            "protocol",
            "",
            "Who tells it: told, somebody who is right as often as `prediction` says; order-1, order-2, an "
            "hour of other publishers' moves, by where one is, and by where it came from too.",
        ),
    ] = "told"
    covering: Annotated[
        bool,
        factor("protocol", "", "Whether a covered subscription or advertisement is held back (section 2.2)."),
    ] = True
    topology: Annotated[
        str, factor("network", "", "Shape of the broker network: " + ", ".join(TOPOLOGIES) + ".")
    ] = "tree"
    tree_height: Annotated[
        int, factor("network", "levels", "Levels of the tree, root and leaves included.")
    ] = 4
    tree_degree: Annotated[
        int, factor("network", "brokers", "Children of every inner broker of the tree.")
    ] = 4
    brokers: Annotated[
        int,
        factor("network", "brokers", "Brokers of a chain, ring or star; a tree has what its height gives."),
    ] = 85
    topology_file: Annotated[
        str, factor("network", "", "TOML file with `links` and, if wished, `leaves`.")
    ] = ""
    link_bandwidth_bps: Annotated[float, factor("network", "bit/s", "Bandwidth between two brokers.")] = 10e6
    link_latency_ms: Annotated[float, factor("network", "ms", "Latency between two brokers.")] = 2.0
    client_bandwidth_bps: Annotated[
        float, factor("network", "bit/s", "Bandwidth between client and broker.")
    ] = 128e3
    client_latency_ms: Annotated[float, factor("network", "ms", "Latency between client and broker.")] = 2.0
    broker_width_km: Annotated[
        float, factor("network", "km", "Placement: the width of the street that one leaf broker serves.")
    ] = 0.5
    movement: Annotated[
        str,
        factor(
            "mobility",
            "",
            "random: straight on, turning at the city's ends (section 5.2.1); walk: a coin at every broker; "
            "route: to and fro between two leaves; group: several publishers together; patrol: within the "
            "proxies and the overshoot (section 5.2.6).",
        ),
    ] = "random"
    speeds_kmh: Annotated[tuple[float, ...], factor("mobility", "km/h", "Speeds to draw from.")] = (
        5.0,
        50.0,
        100.0,
    )
    speed_drawn: Annotated[
        str, factor("mobility", "", "Whether a speed is drawn once per publisher or anew at every move.")
    ] = "publisher"
    disconnection_s: Annotated[
        float, factor("mobility", "s", "Time without a broker between two brokers.")
    ] = 3.0
    start_spread: Annotated[
        float,
        factor(
            "mobility",
            "share",
            "Part of a broker's street over which starting points are spread; 0: all cross borders in step.",
        ),
    ] = 1.0
    under_way_s: Annotated[
        float,
        factor(
            "mobility",
            "s",
            "Publishers set out at random times up to this long before time 0; proxies lie where they did.",
        ),
    ] = 0.0
    overshoot: Annotated[int, factor("mobility", "brokers", "How far a patrol goes past its proxies.")] = 0
    route_brokers: Annotated[int, factor("mobility", "brokers", "Leaves of a repeated route.")] = 8
    group_size: Annotated[int, factor("mobility", "publishers", "Publishers that move as one group.")] = 10
    computations: Annotated[
        str,
        factor(
            "application",
            "",
            "Routing computations charged (section 5.2.2): none; fast: 2/4/2 ms a publication, subscription, "
            "advertisement; complex: N/1000 + 40 ms, twice and once that; measured: the calibration file's.",
        ),
    ] = "none"
    withdrawals_charged: Annotated[
        bool,
        factor(
            "application",
            "",
            "Whether an unadvertisement or unsubscription is charged like what it withdraws, or is free.",
        ),
    ] = True
    insertion_ms: Annotated[
        float,
        factor(
            "application",
            "ms",
            "What inserting a subscription takes; 0: as long as a match, as section 3 has it.",
        ),
    ] = 0.0
    total_subscriptions: Annotated[
        int,
        factor(
            "application", "subscriptions", "N of the complex class: subscriptions a broker is taken to hold."
        ),
    ] = 100_000
    calibration_file: Annotated[
        str, factor("application", "", "What our own index takes, for computations = measured.")
    ] = ""
    publishers: Annotated[int, factor("application", "clients", "Moving publishers.")] = 50
    subscribers: Annotated[
        int, factor("application", "clients", "Subscribers, which stay where they are.")
    ] = 500
    publish_interval_s: Annotated[
        float,
        factor("application", "s", "Time between two events of a connected publisher; 0 publishes nothing."),
    ] = 0.0
    publication_locality: Annotated[
        float, factor("application", "share", "Publishers that publish the same thing (section 5.2.7).")
    ] = 0.0
    subscriber_locality: Annotated[
        float,
        factor("application", "share", "Subscribers that sit downtown, in the middle eighth of the leaves."),
    ] = 0.0
    interest_locality: Annotated[
        float, factor("application", "share", "Subscribers that all ask for one and the same publication.")
    ] = 0.0
    specificity: Annotated[
        float,
        factor("application", "share", "1: a subscription asks for one publication; 0: for all of them."),
    ] = 1.0
    control_bytes: Annotated[
        int,
        factor("application", "bytes", "An advertisement, a subscription or its withdrawal on the wire."),
    ] = 100
    event_bytes: Annotated[int, factor("application", "bytes", "A publication on the wire.")] = 200

    @property
    def policies(self) -> frozenset[str]:
        """What the protocol is composed of: any of prefetching, proxy, delayed."""
        name = self.protocol.replace("prefetch-delayed", "prefetching+delayed")
        return frozenset() if name == "standard" else frozenset(name.split("+"))

    def validate(self) -> None:
        """Raise one sentence for the first parameter that has no meaning."""
        _check_choices(self)
        self.check_ranges(
            (_AT_LEAST_ONE, AT_LEAST_ONE),
            (_POSITIVE, POSITIVE),
            (_NOT_NEGATIVE, NOT_NEGATIVE),
            (_SHARES, SHARE),
        )
        _check_movement(self)


class Factor(NamedTuple):
    """One row of `sojourn simulate --list`."""

    name: str
    group: str
    unit: str
    default: object
    explanation: str


def factors(kind: type[Described] = Scenario) -> list[Factor]:
    """Every factor of a kind of scenario with its unit, default and explanation, in the structure's order."""
    hints = get_type_hints(kind, include_extras=True)
    table = []
    for field in msgspec.structs.fields(kind):
        meta = get_args(hints[field.name])[1]
        extra = meta.extra
        table.append(Factor(field.name, extra["group"], extra["unit"], field.default, meta.description))
    return table


def scenario_from(values: Mapping[str, object]) -> Scenario:
    """A validated scenario from plain values, with a sentence about the first that does not fit."""
    return described_from(values, Scenario)


def described_from(values: Mapping[str, object], kind: type[DescribedT]) -> DescribedT:
    """The same for any kind of scenario."""
    known = kind.__struct_fields__
    for name in values:
        if name not in known:
            raise ScenarioError(
                f"{name} is no parameter of a scenario; `sojourn simulate --list` names them all."
            )
    try:
        scenario = msgspec.convert(dict(values), kind, strict=False)
    except msgspec.ValidationError as error:
        text = str(error)
        name = text.rpartition("$.")[2].rstrip("`") or "scenario"
        what = text.partition(" - at")[0].replace("`", "").lower()
        raise ScenarioError(f"{name} has a value of the wrong type: {what}.") from None
    scenario.validate()
    return scenario


def load_values(path: Path) -> dict[str, object]:
    """The plain values of a scenario's TOML file, not yet checked."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise ScenarioError(
            f"The scenario file {path} cannot be read; give the path of a TOML file."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"The scenario file {path} is not TOML: {error}.") from None


def _check_choices(scenario: Scenario) -> None:
    parts = scenario.policies
    if not parts <= POLICIES:
        raise ScenarioError(
            f"protocol may be {', '.join(PROTOCOLS)} or parts joined by +, not {scenario.protocol!r}."
        )
    scenario.check_choices(
        {
            "topology": TOPOLOGIES,
            "computations": COMPUTATIONS,
            "movement": MOVEMENTS,
            "speed_drawn": SPEED_DRAWS,
        }
    )
    if scenario.topology == "file" and not scenario.topology_file:
        raise ScenarioError("topology_file must name a TOML file when topology is file.")
    if scenario.computations == "measured" and not scenario.calibration_file:
        raise ScenarioError("calibration_file must name a calibration when computations is measured.")


_AT_LEAST_ONE = (
    "tree_height",
    "tree_degree",
    "brokers",
    "publishers",
    "proxies",
    "route_brokers",
    "group_size",
)
_POSITIVE = ("duration_s", "link_bandwidth_bps", "client_bandwidth_bps", "broker_width_km")
_NOT_NEGATIVE = (
    "seed",
    "warmup_s",
    "unadvertise_delay_s",
    "link_latency_ms",
    "client_latency_ms",
    "disconnection_s",
    "under_way_s",
    "insertion_ms",
    "overshoot",
    "total_subscriptions",
    "subscribers",
    "publish_interval_s",
    "control_bytes",
    "event_bytes",
)
_SHARES = (
    "prediction",
    "start_spread",
    "publication_locality",
    "subscriber_locality",
    "interest_locality",
    "specificity",
)


def _check_movement(scenario: Scenario) -> None:
    scenario.check_choices({"predictor": PREDICTORS})
    if not scenario.speeds_kmh or not all(
        math.isfinite(speed) and speed > 0 for speed in scenario.speeds_kmh
    ):
        raise ScenarioError("speeds_kmh must hold one speed or more, each above 0.")
    fastest_s = scenario.broker_width_km / max(scenario.speeds_kmh) * 3600
    if fastest_s <= scenario.disconnection_s:
        raise ScenarioError(
            f"disconnection_s must be shorter than the {fastest_s:.3g} s that the fastest of speeds_kmh "
            f"spends at one broker, not {scenario.disconnection_s:g}."
        )
