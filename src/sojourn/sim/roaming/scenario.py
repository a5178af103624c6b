"""One simulated run of roaming subscribers, described by every factor of paper 001's section 5.1 and ours.

As `scenario.py`: data where each field has a unit and a sentence, so that the structure is also the table
that `sojourn simulate --list` prints. Workload defaults are the paper's Table 1. What a broker's work costs
is not in the paper; by default it is free, and the hand-off study fits it (`studies/handoff/parameters.py`).
"""

from typing import Annotated

from sojourn.sim.roaming.run import MODELS
from sojourn.sim.scenario import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    PROTOCOLS,
    SHARE,
    Described,
    ScenarioError,
    factor,
)

SCHEMES = ("durable", "reactive", "proactive")
ROUTINGS = ("flooding", "content")
NETWORKS = ("building", "grid", "chain", "ring", "star", "file")
PREDICTORS = ("graph", "order-1", "order-2", "oracle")
PLACEMENTS = ("own", "load")
KNOWN_GRAPHS = ("none", "links", "complete")


class RoamingScenario(Described, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every factor of one run of roaming subscribers."""

    seed: Annotated[
        int, factor("run", "", "Root of every random stream; the same seed gives the same run.")
    ] = 1
    warmup_s: Annotated[float, factor("run", "s", "Time before statistics count.")] = 120.0
    duration_s: Annotated[float, factor("run", "s", "Measured time after the warm-up.")] = 300.0
    scheme: Annotated[
        str, factor("hand-off", "", "How subscribers are handed over: " + ", ".join(SCHEMES) + ".")
    ] = "proactive"
    predictor: Annotated[
        str,
        factor(
            "hand-off",
            "",
            "Who gets pro-active copies: graph, all neighbours in the learnt graph; order-1, the likely next "
            "brokers of those who are there; order-2, of those who came the same way; oracle, the next one.",
        ),
    ] = "graph"
    predictor_mass: Annotated[
        float, factor("hand-off", "probability", "How much of the next broker's probability copies cover.")
    ] = 0.85
    graph_file: Annotated[
        str, factor("hand-off", "", "Learnt neighbour graph (`sojourn learn`) for order-1 and order-2.")
    ] = ""
    training_s: Annotated[
        float,
        factor("hand-off", "s", "Instead of a file: learn from so much movement of other clients."),
    ] = 0.0
    known_graph: Annotated[
        str,
        factor(
            "hand-off",
            "",
            "What brokers know of the neighbour graph at the start: none, they learn it; links, the "
            "network's own; complete, every broker is everybody's neighbour.",
        ),
    ] = "none"
    edge_timeout_s: Annotated[
        float, factor("hand-off", "s", "A learnt edge that nobody crossed for so long is forgotten.")
    ] = 3600.0
    subscriber_timeout_s: Annotated[
        float, factor("hand-off", "s", "A client that stays away longer is taken for dead: Timeout(S).")
    ] = 600.0
    placement: Annotated[
        str,
        factor(
            "hand-off", "", "own: a client connects where it is; load: it may be redirected to a neighbour."
        ),
    ] = "own"
    placement_margin: Annotated[
        int, factor("hand-off", "clients", "How many fewer clients a broker must have to be redirected to.")
    ] = 2
    ping_s: Annotated[float, factor("hand-off", "s", "Time between two pings of a connected client.")] = 0.2
    acknowledge_s: Annotated[
        float, factor("hand-off", "s", "How often brokers book what a connected client has acknowledged.")
    ] = 1.0
    pings_missed: Annotated[
        int, factor("hand-off", "pings", "Unanswered pings after which a link counts as broken.")
    ] = 2
    routing: Annotated[
        str, factor("network", "", "How events get to brokers: " + ", ".join(ROUTINGS) + ".")
    ] = "flooding"
    covering: Annotated[
        bool, factor("network", "", "Whether covered subscriptions are held back, with content routing.")
    ] = True
    topology: Annotated[
        str, factor("network", "", "Broker network: " + ", ".join(NETWORKS) + "; building has six.")
    ] = "building"
    brokers: Annotated[int, factor("network", "brokers", "Brokers of a grid, chain, ring or star.")] = 6
    topology_file: Annotated[
        str, factor("network", "", "TOML file with `links` and, for places, the table `points`.")
    ] = ""
    link_bandwidth_bps: Annotated[float, factor("network", "bit/s", "Bandwidth between two brokers.")] = 100e6
    link_latency_ms: Annotated[float, factor("network", "ms", "Latency between two brokers.")] = 0.2
    client_bandwidth_bps: Annotated[float, factor("network", "bit/s", "Bandwidth of a client's radio.")] = (
        11e6
    )
    client_latency_ms: Annotated[float, factor("network", "ms", "Delay of a client's radio.")] = 5.0
    client_loss: Annotated[
        float, factor("network", "probability", "Share of radio packets that are lost and sent again.")
    ] = 0.01
    retry_s: Annotated[
        float, factor("network", "s", "After how long a lost packet is sent again; doubles each time.")
    ] = 0.2
    client_duplication: Annotated[
        float,
        factor("network", "probability", "Share of radio packets that are sent twice; clients see one."),
    ] = 0.0
    movement: Annotated[
        str,
        factor(
            "mobility",
            "",
            "random: to any other broker; neighbour: to a neighbour; commute: to a neighbour, rarely back; "
            "file: as `movement_file` says. May be " + ", ".join(MODELS) + ".",
        ),
    ] = "random"
    movement_file: Annotated[
        str, factor("mobility", "", "CSV of sojourns, or floating-car data (.xml) with `points`.")
    ] = ""
    connect_s: Annotated[float, factor("mobility", "s", "Mean time connected to a broker.")] = 60.0
    disconnect_s: Annotated[float, factor("mobility", "s", "Mean time of a broken link.")] = 12.0
    handoff_s: Annotated[float, factor("mobility", "s", "Mean time between two brokers.")] = 3.0
    under_way_s: Annotated[
        float, factor("mobility", "s", "How long clients have been roaming at time 0; from uniform places.")
    ] = 1800.0
    hysteresis_m: Annotated[
        float, factor("mobility", "m", "How much nearer another broker must be, with places from a file.")
    ] = 10.0
    range_m: Annotated[float, factor("mobility", "m", "Reach of a broker, with places from a file.")] = 500.0
    subscribers: Annotated[int, factor("application", "clients", "Roaming subscribers.")] = 200
    publishers: Annotated[int, factor("application", "clients", "Publishers.")] = 1
    publishers_move: Annotated[
        bool, factor("application", "", "Whether publishers roam as subscribers do, or stay.")
    ] = False
    publisher_protocol: Annotated[
        str,
        factor("application", "", "What brokers do when a publisher moves: " + ", ".join(PROTOCOLS) + "."),
    ] = "delayed"
    publisher_broker: Annotated[
        str, factor("application", "", "Broker of publishers that stay; the overlay's centre if empty.")
    ] = ""
    publish_window: Annotated[
        int,
        factor("application", "events", "Events of a publisher that may be unacknowledged; 1: synchronous."),
    ] = 1
    sleep_s: Annotated[
        float,
        factor("application", "s", "Pause of a publisher between an acknowledgement and its next event."),
    ] = 0.0
    selectivity: Annotated[
        float, factor("application", "share", "Share of all events that each subscriber wants.")
    ] = 0.2
    event_bytes: Annotated[int, factor("application", "bytes", "An event on the wire and in a queue.")] = 1024
    control_bytes: Annotated[int, factor("application", "bytes", "A control message on the wire.")] = 128
    queue_bytes: Annotated[
        int, factor("application", "bytes", "What a broker's queue holds for clients that are away.")
    ] = 1_000_000
    queue_evicts: Annotated[
        bool,
        factor("application", "", "Whether a full queue gives up its oldest event, or refuses the new one."),
    ] = True
    message_cost_ms: Annotated[
        float, factor("costs", "ms", "A broker's work for any message that ends or starts there.")
    ] = 0.0
    match_cost_ms: Annotated[
        float, factor("costs", "ms", "More for each subscriber or active copy that an event matches.")
    ] = 0.0
    store_cost_ms: Annotated[
        float, factor("costs", "ms", "More for each event put into the queue, however many want it.")
    ] = 0.0
    transfer_cost_ms: Annotated[
        float, factor("costs", "ms", "A broker's work for each event sent to or got from another's queue.")
    ] = 0.0

    slow_brokers: Annotated[
        str, factor("costs", "", "Names of brokers on slower machines, with commas between them.")
    ] = ""
    slow_times: Annotated[
        float, factor("costs", "times", "How much longer everything takes at those brokers.")
    ] = 1.0

    def validate(self) -> None:
        """Raise one sentence for the first parameter that has no meaning."""
        _check_choices(self)
        _check_ranges(self)


def _check_choices(scenario: RoamingScenario) -> None:
    scenario.check_choices(
        {
            "scheme": SCHEMES,
            "routing": ROUTINGS,
            "topology": NETWORKS,
            "movement": MODELS,
            "predictor": PREDICTORS,
            "placement": PLACEMENTS,
            "known_graph": KNOWN_GRAPHS,
            "publisher_protocol": PROTOCOLS,
        }
    )
    for needed, name, value in (
        ("topology_file", "topology", "file"),
        ("movement_file", "movement", "file"),
    ):
        if getattr(scenario, name) == value and not getattr(scenario, needed):
            raise ScenarioError(f"{needed} must name a file when {name} is {value}.")
    if scenario.movement == "file" and scenario.publishers_move:
        raise ScenarioError("publishers_move needs drawn movement; movement file moves subscribers only.")
    if scenario.predictor.startswith("order-") and not (scenario.graph_file or scenario.training_s > 0):
        raise ScenarioError(
            f"graph_file must name a file, or training_s be above 0, for {scenario.predictor}."
        )


_AT_LEAST_ONE = ("brokers", "subscribers", "publishers", "publish_window", "pings_missed", "event_bytes")
_POSITIVE = (
    "duration_s",
    "link_bandwidth_bps",
    "client_bandwidth_bps",
    "connect_s",
    "disconnect_s",
    "handoff_s",
    "ping_s",
    "acknowledge_s",
    "edge_timeout_s",
    "subscriber_timeout_s",
    "selectivity",
    "range_m",
    "slow_times",
)
_NOT_NEGATIVE = (
    "seed",
    "warmup_s",
    "link_latency_ms",
    "client_latency_ms",
    "retry_s",
    "hysteresis_m",
    "sleep_s",
    "control_bytes",
    "queue_bytes",
    "placement_margin",
    "training_s",
    "under_way_s",
    "message_cost_ms",
    "match_cost_ms",
    "store_cost_ms",
    "transfer_cost_ms",
)


def _check_ranges(scenario: RoamingScenario) -> None:
    scenario.check_ranges(
        (_AT_LEAST_ONE, AT_LEAST_ONE),
        (_POSITIVE, POSITIVE),
        (_NOT_NEGATIVE, NOT_NEGATIVE),
        (("selectivity", "predictor_mass", "client_duplication"), SHARE),
        (("client_loss",), (0.0, 0.9, "must lie between 0 and 0.9")),
    )
    if scenario.message_cost_ms == 0 and scenario.link_latency_ms == 0 and scenario.sleep_s == 0:
        raise ScenarioError("sleep_s must be more than 0 where neither brokers nor links take any time.")
