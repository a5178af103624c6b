"""What a person is shown of the study: its figures and the constants behind them."""

from sojourn.studies import base
from sojourn.studies.drawing import Figure
from sojourn.studies.handoff import figures, figures_beyond, parameters
from sojourn.studies.handoff.paper import SCHEMES
from sojourn.studies.handoff.parameters import Scale
from sojourn.studies.means import Table
from sojourn.studies.wording import numbered

Outcome = base.Outcome[Scale, Table]

TITLE = "Subscribers that roam: durable, reactive and pro-active hand-off (paper 001)"

FIGURES = (
    Figure("table-2", ("B-table2",), figures.table_2),
    Figure("table-3", ("B-table3",), figures.table_3),
    Figure("table-4", ("B-table4",), figures.table_4),
    Figure("5a", ("B-fig5-latency",), figures.figure_5a),
    Figure("5b", ("B-table2",), figures.figure_5b),
    Figure("5c", ("B-fig5-latency",), figures.figure_5c),
    Figure("6", ("B-fig6-handoff",), figures.figure_6),
    Figure("7a", ("B-fig7-frequency",), figures.figure_7a),
    Figure("7b", ("B-fig7-frequency",), figures.figure_7b),
    Figure("7c", ("B-fig7-frequency",), figures.figure_7c),
    Figure("8a", ("B-fig8-brokers",), figures.figure_8a),
    Figure("8b", ("B-fig8-brokers",), figures.figure_8b),
    Figure("11", ("B-polynomial",), figures.figure_11),
    Figure("12", ("B-polynomial", "B-ctmc-random"), figures.figure_12),
    Figure("13", ("B-polynomial", "B-ctmc-neighbour"), figures.figure_13),
    Figure("occupancy", ("B-ctmc-neighbour",), figures.occupancy_figure),
    Figure("cost-messages", (), figures_beyond.cost_messages),
    Figure("cost-bytes", (), figures_beyond.cost_bytes),
    Figure("cost-copies", (), figures_beyond.cost_copies),
    Figure("cost-queue", (), figures_beyond.cost_queue),
    Figure("predictor", ("B-neighbour-graph",), figures_beyond.predictor),
    Figure("predictor-misses", ("B-neighbour-graph",), figures_beyond.predictor_misses),
    Figure("placement", ("B-future-load",), figures_beyond.placement),
    Figure("both", ("B-future-load",), figures_beyond.both_move),
    Figure("readings", ("B-table2",), figures_beyond.readings),
    Figure("window", ("B-table2",), figures_beyond.window),
    Figure("queue", ("B-table3",), figures_beyond.queue_size),
    Figure("sleep", (), figures_beyond.sleep_time),
    Figure("bandwidth", (), figures_beyond.bandwidth),
    Figure("disconnected", (), figures_beyond.disconnected),
    Figure("between", (), figures_beyond.between_brokers),
    Figure("size-throughput", ("B-table2",), figures_beyond.size_throughput),
    Figure("size-loss", ("B-table3",), figures_beyond.size_loss),
    Figure("size-duplicates", ("B-table4",), figures_beyond.size_duplicates),
)


def finding(table: Table) -> str:
    """The three schemes at the largest population that all of them ran with."""
    lines = {
        (scheme, measure): table.points("tables", scheme, "RND", measure)
        for scheme in SCHEMES
        for measure in ("throughput", "loss_percent", "handoff p50")
    }
    most = max(set.intersection(*(set(points) for points in lines.values())))
    said = {}
    for scheme in SCHEMES:
        throughput, lost, half = (
            lines[scheme, measure][most] for measure in ("throughput", "loss_percent", "handoff p50")
        )
        said[scheme] = (
            f"{throughput:,.0f} messages a second, {lost:.2g}% lost, half of all hand-offs within "
            f"{half / 1000:.2g} s"
        )
    return (
        f"With {most:g} subscribers that roam at random, pro-active hand-off gives {said['proactive']}; "
        f"reactive {said['reactive']}; durable subscriptions {said['durable']}."
    )


def constants(outcome: Outcome) -> list[tuple[str, str]]:
    """The constants of the study, and what the paper leaves open."""
    scale = outcome.scale
    return [
        ("scale", f"{scale.name}: {numbered('seeds', outcome.seeds)}"),
        scale.time,
        (
            "brokers",
            (
                "the six of the paper's building; an event is acknowledged when all have handled it, and "
                "then the publisher, at the overlay's centre B3, sends the next one (figure Pacing: up to "
                "eight at a time)"
            ),
        ),
        (
            "subscribers",
            (
                "connected 60 s, disconnected 12 s, between brokers 3 s on average; 20% of all events "
                "each, as an interval of values"
            ),
        ),
        (
            "costs, fitted on pro-active RND of Table 2 alone",
            (
                f"{parameters.MESSAGE_COST_MS:g} ms a message, {parameters.MATCH_COST_MS:g} ms a subscriber "
                f"or active copy that an event matches, {parameters.STORE_COST_MS:g} ms a stored event"
            ),
        ),
        (
            "a transferred event",
            f"{parameters.TRANSFER_COST_MS:g} ms at either end, as a message: assumed, see figure Readings",
        ),
        (
            "not in the paper",
            (
                f"{parameters.EVENT_BYTES} bytes an event (other sizes are readings), "
                f"{parameters.CONTROL_BYTES} a control message; a "
                f"link counts as broken after {parameters.PINGS_MISSED} pings of {parameters.PING_S:g} s; "
                "radio 11 Mb/s, 5 ms, 1% of packets sent again"
            ),
        ),
        (
            "not chosen blind",
            (
                "the costs are fitted on one column, but the form of the model (what a transfer costs, how "
                "soon a broken link is noticed, how stored events are replayed, what a full queue does) was "
                "settled among variants whose results elsewhere had been seen; pings of 1 s or cheap "
                "transfers make pro-active slower than reactive (figure Readings)"
            ),
        ),
    ]
