"""What of a broker's session core is stored: every class of its state, and each of its attributes.

To add a class: declare it here or in `state_network.py` under a name that never changes, with the fields that
are stored and those that are not. To add an attribute to a class: name it in one of the two; a test fails
until it is. How the declarations are used is told in `state_codec.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from sojourn.broker.state_fields import (
    DEQUE,
    NAME,
    NUMBERS,
    REF,
    REF_VALUES,
    SET,
    TUPLE,
    Choice,
    MessageProperties,
    Patterns,
    Pieces,
    Reader,
    Refs,
    Row,
    Rows,
    RowValues,
    Struct,
    Writer,
    fields,
)
from sojourn.broker.state_kinds import Part, Record, StateError, Table, Text, Value
from sojourn.edge.queues import QueuePolicy
from sojourn.interest import Filter, Policy
from sojourn.mqtt.acknowledging import Acknowledger
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.bans import Bans
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.connection import State as Phase
from sojourn.mqtt.content import subscriber_event
from sojourn.mqtt.core import Core
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.filter_book import FilterBook
from sojourn.mqtt.gate import Gate
from sojourn.mqtt.handshake import Handshake
from sojourn.mqtt.input import Input
from sojourn.mqtt.message import Message
from sojourn.mqtt.parties import party_of
from sojourn.mqtt.publishing import Publisher
from sojourn.mqtt.retained import Retained, Tombstone
from sojourn.mqtt.room import levels_of
from sojourn.mqtt.session import Delivery, Permissions, Session, Subscription, Will
from sojourn.mqtt.session_state import SessionState
from sojourn.mqtt.state import Counters, Due, State
from sojourn.mqtt.subscribing import Subscriber
from sojourn.mqtt.topic_tree import TopicTree

# Values: sessions and messages ---------------------------------------------------------------------------


def _blank_session() -> Session:
    return Session("", 0.0)


NOBODY = _blank_session()


def _know_party(connection: Connection) -> None:
    connection.party = party_of(connection.peer)


def _know_attributes(session: Session) -> None:
    session.attributes = subscriber_event(session.stated)


def _look_at_packet(message: Message) -> None:
    if not 0 < message.id_at <= message.payload_at <= len(message.frame):
        raise StateError("a message's packet is shorter than it should be.")
    message.weighed = 0


SESSIONS = (
    Text("filter", Filter, lambda text: Filter.parse(text, limited=False)),
    Text("policy", Policy, lambda text: Policy(Filter.parse(text, limited=False))),
    Value(
        "message",
        Message,
        lambda: Message("", b"0", 1, 1, 0, 0.0),
        fields(
            "frame payload_at id_at qos arrived_s retain expiry expires_s sequence",
            topic=NAME,
            publisher=NAME,
            source=NAME,
            address=NAME,
            party=NAME,
            properties=MessageProperties(),
            policy=REF,
        ),
        rebuilt="attributes event weighed _plain _forms",
        finish=_look_at_packet,
    ),
    Record("delivery", Delivery, fields("qos retain kept", message=REF, identifiers=TUPLE)),
    Record("will", Will, fields("delay_s", message=REF)),
    Record(
        "permissions",
        Permissions,
        fields("", publish=Patterns(), subscribe=Patterns(), publish_if=REF, subscribe_if=REF),
    ),
    Record(
        "admission",
        Admission,
        fields(
            "username may_state owner among_others until_s",
            attributes=NUMBERS,
            permissions=REF,
            state=Struct(SessionState),
        ),
    ),
    Value(
        "subscription",
        Subscription,
        lambda: Subscription(NOBODY, "", qos=0),
        fields(
            "text pattern share qos no_local retain_as_published retain_handling since_s filter_text",
            session=REF,
            identifiers=TUPLE,
            filter=REF,
            policy=Row(QueuePolicy),
        ),
    ),
    Value(
        "session",
        Session,
        _blank_session,
        fields(
            "client_id started_s ended expiry expires_s held thin_at username owner owned_s previous filters "
            "queued_bytes address missed "
            "inflight_bytes next_id left_s last_number last_unsure will_s reminded_s",
            connection=REF,
            permissions=REF,
            stated=NUMBERS,
            advertisements=TUPLE,
            subscriptions=REF_VALUES,
            inflight=REF_VALUES,
            unsent=DEQUE,
            queue=Refs(deque),
            received=SET,
            will=REF,
        ),
        rebuilt="attributes address_use levels",
        finish=_know_attributes,
    ),
    Value(
        "connection",
        Connection,
        lambda: Connection(0, "", "", 0.0),
        fields(
            "number peer fresh_id connect have needed deadline_s seen_s keep_alive_s blocked direct "
            "window packet_bytes_max aliases_in aliases_out aliases_out_max problem_information numbered "
            "parts_left part_codes part_codes_beyond part_reasons offset waits reminded "
            "tokens tokens_s is_old is_bridge translated until_s",
            pieces=Pieces(),
            unreleased=SET,
            state=Choice(Phase),
            session=REF,
        ),
        rebuilt="output put_out said address_use is_gone rests greets greeting party",
        finish=_know_party,
    ),
)


# Parts: the session core ---------------------------------------------------------------------------------


def _count_filters(state: State) -> None:
    """Enter the filters of all subscriptions in the book, so that equal ones are one object again."""
    state.subscriptions = sum(len(session.subscriptions) for session in state.sessions.values())
    for session in state.sessions.values():
        subscriptions = session.subscriptions.values()
        session.levels = sum(levels_of(one.text, one.filter_text) for one in subscriptions)
        for subscription in session.subscriptions.values():
            if subscription.filter is not None:
                subscription.filter = state.filters.add(subscription.filter)
    state.levels = sum(session.levels for session in state.sessions.values())
    state.queued = sum(len(session.queue) for session in state.sessions.values())
    _count_bytes(state)
    state.count_wills()
    state.address_uses.count(state.sessions.values())


def _count_bytes(state: State) -> None:
    """Count what waits: an earlier build that wrote the state counted less."""
    for session in state.sessions.values():
        session.queued_bytes = sum(one.message.size for one in session.queue)
        sent = session.inflight.values()
        session.inflight_bytes = sum(one.message.size for one in sent if one is not None)
    state.queued_bytes = sum(session.queued_bytes for session in state.sessions.values())
    state.inflight_bytes = sum(session.inflight_bytes for session in state.sessions.values())


def _save_tree(tree: TopicTree, writer: Writer) -> dict[str, Any]:
    shares = [
        [share.turn, share.turn_unsure, [writer.ref(one) for one in share.members.values()]]
        for share in tree.shares()
    ]
    return {"subscriptions": [writer.ref(one) for one in tree.subscriptions()], "shares": shares}


def _restore_tree(tree: TopicTree, plain: Mapping[str, Any], reader: Reader) -> None:
    tree.restore(
        [reader.thing(place) for place in plain["subscriptions"]],
        [
            (turn, unsure, [reader.thing(place) for place in members])
            for turn, unsure, members in plain["shares"]
        ],
    )


def _moment(moment_s: float, made: int, about: int, whom: int | str) -> tuple[float, int, Due, int | str]:
    return moment_s, made, Due(about), whom


CORE = (
    Part(
        Core,
        parts="state",
        wired="effects deliverer subscriber handshake timekeeper publisher acknowledger dispatch custody "
        "gate kept _unsure",
    ),
    Part(
        State,
        fields(
            "origin queued_bytes inflight_bytes sequence numbered_s refusing _moments_made _moments_max",
            sessions=REF_VALUES,
            connections=REF_VALUES,
            _moments=Rows(_moment),
            _aged=Rows(_moment),
        ),
        parts="counters tree retained input bans",
        wired="name limits _session_expiry_max_s shared_subscriptions effects filters quenches topics "
        "put_out subscriptions levels queued will_bytes address_uses system_values",
        finish=_count_filters,
    ),
    Part(Bans, fields("known hush"), wired="_networks", finish=Bans.rebuild),
    Part(Counters, fields("received delivered dropped refused")),
    Part(Input, fields("bytes by_address since"), wired="ring aside unread", finish=Input.rename),
    Part(
        TopicTree,
        wired="_exact _root _shares routes _route_bytes looked by_bytes",
        save=_save_tree,
        restore=_restore_tree,
    ),
    Part(
        Retained,
        fields(
            "_tombstone_bytes bytes lacks",
            _kept=REF_VALUES,
            _expiring=Rows(lambda moment_s, topic: (moment_s, topic)),
            _tombstones=RowValues(lambda row: Tombstone(*row)),
        ),
        wired="_root _messages_max _bytes_max shares changes",
        finish=Retained.rebuild,
    ),
    Part(FilterBook, wired="_numbers _filters _uses _tests _index _last indexed wants_index"),
    Part(Deliverer, wired="shared _judges thinning"),
    Part(Subscriber, wired="shared deliverer greeter changes"),
    Part(Publisher, wired="shared deliverer _publisher _origin _source"),
    Part(Acknowledger, wired="shared effects deliverer"),
    Part(Gate, wired="_shared slices unsliced"),
    Part(Handshake, wired="shared deliverer subscriber reviewer wills"),
)

TABLE = Table.of(SESSIONS, CORE)
"""Of a broker without neighbours."""
