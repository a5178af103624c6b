"""What a broker's settings mean to the mobility core.

It stands apart from the settings, which whoever only starts brokers reads without any of the cores.
"""

from __future__ import annotations

from sojourn.broker.links import Links
from sojourn.broker.settings import Settings
from sojourn.mobility.broker import Broker
from sojourn.mobility.keeping import COPY_TIMEOUTS
from sojourn.mobility.policies import Policy
from sojourn.mobility.prediction import Predictor
from sojourn.mobility.schemes import Scheme


def mobility_core(settings: Settings, links: Links) -> Broker:
    """Return the core of a broker with these settings and links."""
    core = Broker(
        links.number,
        links.neighbours,
        links.interests,
        Policy.named(settings.mobility.publishers),
        links.overlay.next_hop,
        scheme=scheme_of(settings),
        flooding=settings.routing.mode == "flooding",
        foresight=foresight_of(settings),
    )
    if settings.mobility.graph == "links":
        for peer in settings.neighbours:
            core.subscribers.table.cross(links.numbers[peer], 0.0)
    return core


def foresight_of(settings: Settings) -> Predictor | None:
    """Return what says where clients go; None where nothing was learnt, and all neighbours are likely."""
    return Predictor(settings.learnt, settings.brokers) if settings.learnt else None


def scheme_of(settings: Settings) -> Scheme:
    """How a broker with these settings serves subscribers that move."""
    mobility = settings.mobility
    return Scheme.named(
        mobility.subscribers,
        gives_along=True,
        signs=True,
        grace_s=mobility.grace_s,
        timeout_s=mobility.timeout_s,
        # As an active copy that is an orphan; a client that stays for longer costs one more message.
        passive_s=COPY_TIMEOUTS * mobility.timeout_s,
        patience_s=mobility.give_up_s,
        queue_bytes_max=settings.limits.queue_bytes_max_all,
        queue_bytes_each_max=settings.limits.queue_bytes_max,
        queue_bytes_party_max=settings.limits.queue_bytes_address_max,
        queue_events_max=settings.limits.queue_messages_max,
        queue_events_all_max=settings.limits.queue_messages_max_all,
        queue_events_party_max=settings.limits.queue_messages_address_max,
        event_bytes=1024,
    )
