"""What a person is shown of the study: its figures and the constants behind them."""

from sojourn.studies import base
from sojourn.studies.means import Table
from sojourn.studies.publisher_mobility import parameters
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.publisher_mobility.parameters import Scale
from sojourn.studies.wording import numbered

REBUILDING = (
    "from the new broker's first act for a move until the move's last advertisement or subscription is "
    "processed, averaged over all moves but those to a proxy of the publisher's own, where none is built"
)

Outcome = base.Outcome[Scale, Table]

TITLE = "Publishers that move over a content-based network (paper 000)"


def finding(table: Table) -> str:
    """What the protocols cost with the most publishers that all of them ran with."""
    lines = {name: table.points("publishers", name, "none", "messages_per_min") for name in FOUR}
    most = max(set.intersection(*(set(points) for points in lines.values())))
    standard = lines["standard"][most]
    others = ", ".join(
        f"{name} {points[most]:,.0f} ({points[most] / standard:.0%} of that)"
        for name, points in lines.items()
        if name != "standard"
    )
    return (
        f"With {most:g} publishers on the move, rebuilding trees the standard way costs {standard:,.0f} "
        f"control messages a minute; {others}."
    )


def constants(outcome: Outcome) -> list[tuple[str, str]]:
    """The constants of the study."""
    scale = outcome.scale
    return [
        ("scale", f"{scale.name}: {numbered('seeds', outcome.seeds)}"),
        scale.time,
        ("network", "tree of 85 brokers, 64 leaves of 0.5 km; 10 Mb/s and 2 ms between brokers (Table 4)"),
        ("clients", "50 publishers and 500 subscribers unless the axis says otherwise; 128 kb/s and 2 ms"),
        (
            "movement",
            "5, 50 or 100 km/h drawn per publisher, east or west, 3 s disconnected, turning at the ends",
        ),
        (
            "under way",
            f"publishers set out at random times in the {parameters.UNDER_WAY_S / 3600:g} hours before a run",
        ),
        ("control message", f"{parameters.CONTROL_BYTES} bytes (the paper gives none)"),
        ("event", f"{parameters.EVENT_BYTES} bytes (the paper gives none)"),
        ("cost", "hops of advertisements, subscriptions, their withdrawals and prefetch notices a minute"),
        ("rebuilding time", REBUILDING),
    ]
