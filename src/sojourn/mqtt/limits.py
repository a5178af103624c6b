"""What one broker allows its clients; every queue and table of the session core has its limit here."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sojourn.mqtt.ranges import BYTES_2_MAX, BYTES_4_MAX, OneOrMore, Range, ZeroOrMore

CONNECT_BYTES = 128
"""A CONNECT with a short name and a password fits into so many."""
PACKET_BYTES = 268_435_460
"""The largest packet that there is (MQTT 5, section 2.1.4), with its head."""
CLIENT_ID_BYTES = 23
"""Client identifiers of so many every broker has to take (MQTT 5, section 3.1.3.1)."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on clients, each with its unit in its name; the defaults suit a broker with a gigabyte.

    What counts as one address is said in `parties.py`: by IPv6 all addresses of a /64 do. Where a key
    says nothing else of 0, that allows none.
    """

    connections_max: OneOrMore = 20_000
    """Connections of all clients."""
    connections_address_max: ZeroOrMore = 10_000
    """Connections of one address, 0 for any number; many clients may share one."""
    connects_per_s_max: ZeroOrMore = 2_000
    """New connections of one address in a second, and for a moment twice as many; 0 for any number."""
    logins_waiting_max: OneOrMore = 100
    """Passwords of one address that wait to be compared."""
    login_pause_max_s: Annotated[float, Range(0)] = 5.0
    """The longest pause before the next password of an address for a user is compared. It begins with a
    tenth of a second after three wrong ones, and doubles with each."""
    publishes_per_s_max: ZeroOrMore = 0
    """Events that a client may publish in a second, and for a moment twice as many; 0 for any number. Who
    sends more is disconnected. Whether there is a limit or not, clients are served in turn."""
    packet_bytes_max: Annotated[int, Range(CONNECT_BYTES, PACKET_BYTES)] = 2 * 1_048_576
    """The largest packet a client may send; announced to it."""
    connect_bytes_max: Annotated[int, Range(CONNECT_BYTES)] = 262_144
    """The largest CONNECT, which comes from somebody who has proved nothing yet; who sends a larger one is
    closed. The payload of a will has 64 KiB at the most."""
    user_properties_max: ZeroOrMore = 1_024
    """User properties of one packet, and of one will; an event has at most 1,000 attributes. Who sends more
    is disconnected."""
    topic_filters_max: OneOrMore = 10_000
    """Topic filters of one SUBSCRIBE or UNSUBSCRIBE; who sends more is disconnected."""
    receive_max: Annotated[int, Range(1, BYTES_2_MAX)] = 1_000
    """QoS 1 and 2 publishes that a client may have unacknowledged; announced to it."""
    inflight_max: Annotated[int, Range(1, BYTES_2_MAX)] = 1_000
    """QoS 1 and 2 messages on their way to one client; its own receive maximum may allow fewer."""
    topic_alias_max: Annotated[int, Range(0, BYTES_2_MAX)] = 100
    """Topic aliases that a client may use, and that are used towards a client that allows them. The topics
    that they stand for have 16,384 characters together in each direction: who uses more is disconnected."""
    subscriptions_max: ZeroOrMore = 1_000
    """Subscriptions of one client."""
    subscriptions_max_all: ZeroOrMore = 1_000_000
    """Subscriptions of all clients of a broker."""
    subscriptions_address_max: ZeroOrMore = 500_000
    """Subscriptions of all clients of one address that are connected; many clients may share one."""
    subscription_levels_max: ZeroOrMore = 20_000
    """Levels of the topic filters of one client's subscriptions together, where every 64 characters of one
    count for a further level, and every 2 of a filter over attributes: each level takes some hundred bytes,
    and time to compare."""
    subscription_levels_max_all: ZeroOrMore = 10_000_000
    """The same of all clients of a broker."""
    subscription_levels_address_max: ZeroOrMore = 5_000_000
    """The same of all clients of one address that are connected."""
    subscribes_per_s_max: ZeroOrMore = 100
    """Topic filters that a client may subscribe to in a second, on and on, after twice `subscriptions_max` at
    once; 0 for any number. More are refused."""
    subscribes_address_per_s_max: ZeroOrMore = 20_000
    """The same of all clients of one address, and for a moment twice as many; 0 for any number."""
    shared_subscriptions_max: ZeroOrMore = 100
    """Shared subscriptions of one client."""
    groups_max_all: ZeroOrMore = 1_000
    """Groups that clients of a broker share subscriptions in, with those that it knows of other brokers: an
    event is sent to each group that wants it, at once. More are refused; who joins one that is there may."""
    groups_address_max: ZeroOrMore = 500
    """The same of all clients of one address; who is away counts for the address that it came from last."""
    member_filter_chars_max_all: ZeroOrMore = 250_000
    """Characters of the filters over attributes that members of shared subscriptions have, at any broker of a
    network: equal ones count once, and 16 in each group. An event that the groups want is compared with all
    of them, at once. More are refused; without neighbours there is no such limit."""
    member_filter_chars_address_max: ZeroOrMore = 125_000
    """The same of clients of one address, at one broker; who is away counts for the address that it came from
    last."""
    filters_max: ZeroOrMore = 200
    """Subscriptions of one client that carry a filter."""
    filter_bytes_max: ZeroOrMore = 4_096
    """The longest text of a filter, a policy or an advertisement."""
    advertisements_max: ZeroOrMore = 100
    """Advertisements of one client; together they are no longer than four of the longest."""
    queue_messages_max: OneOrMore = 100_000
    """Messages waiting for one client."""
    queue_messages_max_all: OneOrMore = 1_000_000
    """The same for all clients together: each takes half a kilobyte besides its bytes. In a network it holds
    once more for what is stored for clients, where an event that is stored for several counts once."""
    queue_messages_address_max: OneOrMore = 500_000
    """The same for all clients of one address; who is away counts for the address that it came from last."""
    queue_bytes_max: OneOrMore = 16 * 1_048_576
    """Bytes waiting for one client, with those that it was sent and has not acknowledged. In a network what
    is stored for clients has a limit of its own, and this is for the rest: QoS 0 and retained messages."""
    queue_bytes_max_all: OneOrMore = 512 * 1_048_576
    """The same for all clients together."""
    queue_bytes_address_max: OneOrMore = 256 * 1_048_576
    """The same for all clients of one address, so that others are left their share; who is away counts for
    the address that it came from last. In a network it holds once more for what is stored for them, where an
    event that is stored for several clients of one address counts once."""
    will_bytes_max_all: ZeroOrMore = 64 * 1_048_576
    """Bytes of the wills of all clients together; who comes with one beyond that is refused."""
    will_bytes_address_max: ZeroOrMore = 32 * 1_048_576
    """The same for all clients of one address; who is away counts for the address that it came from last. A
    session that another broker hands over and that there is no room for has its will published at once."""
    input_bytes_max_all: OneOrMore = 256 * 1_048_576
    """Bytes of packets that have not come whole yet, of all clients together; the largest gives way."""
    input_bytes_address_max: OneOrMore = 64 * 1_048_576
    """The same of all clients of one address."""
    packet_timeout_s: OneOrMore = 60
    """How long a packet may take to come whole."""
    output_bytes_max: OneOrMore = 1_048_576
    """Bytes that one connection may leave unread before messages wait in its queue."""
    output_bytes_address_max: OneOrMore = 64 * 1_048_576
    """The same of all connections of one address together: beyond it they wait for each of them that has left
    anything unread."""
    retained_messages_max: ZeroOrMore = 100_000
    """Topics with a retained message."""
    retained_bytes_max: ZeroOrMore = 256 * 1_048_576
    """Bytes of all retained messages together."""
    retained_messages_address_max: ZeroOrMore = 50_000
    """Topics with a retained message that clients of one address published, at any broker. More are refused
    where they are published; whoever replaces its own, or ends a topic, may go on."""
    retained_bytes_address_max: ZeroOrMore = 128 * 1_048_576
    """Bytes of those messages together."""
    sessions_max: OneOrMore = 100_000
    """Sessions, those of absent clients included."""
    session_expiry_max_s: Annotated[int, Range(0, BYTES_4_MAX)] = 30 * 86_400
    """The longest time that the session of an absent client is kept."""
    old_session_expiry_s: Annotated[int, Range(0, BYTES_4_MAX)] = 7 * 86_400
    """How long the session of an absent MQTT 3.1.1 client is kept, which cannot say that itself, unless it
    asked for a clean one; at most `session_expiry_max_s`."""
    keep_alive_max_s: Annotated[int, Range(0, BYTES_2_MAX)] = 60
    """Clients that ask for a longer keep-alive are told to use this one; a silent client is soon missed. With
    0 nobody is told. Those of MQTT 3.1.1 cannot be told, and keep theirs."""
    connect_timeout_s: OneOrMore = 10
    """How long a new connection may take to be admitted."""
    client_id_bytes_max: Annotated[int, Range(CLIENT_ID_BYTES, BYTES_2_MAX)] = 1_024
    """The longest client identifier."""
