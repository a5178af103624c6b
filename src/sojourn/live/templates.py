"""Configurations to begin with: `sojourn init NAME` writes one, with comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sojourn.errors import SojournError

FIRST_CLIENT_PORT, FIRST_TLS_PORT, FIRST_PEER_PORT, PAGE_PORT = 1883, 8883, 2883, 8080
FIRST_METRICS_PORT, FIRST_WS_PORT, FIRST_SEATS_PORT = 9883, 7883, 3883


class TemplateError(SojournError):
    """There is no template of that name."""


COPIES = 1
"""Of each broker, where there are enough brokers: with two, each would wait while the other is away."""
BROKERS_FOR_COPIES_MIN = 3


class Template(NamedTuple):
    """A network: how many brokers, which of them are linked, and a word on it."""

    brokers: int
    links: Sequence[tuple[int, int]]
    about: str


TEMPLATES = {
    "building": Template(
        6,
        ((1, 2), (1, 6), (2, 3), (2, 6), (3, 4), (3, 5), (3, 6), (4, 6)),
        "Six brokers of a building; links lead where people can walk.",
    ),
    "line": Template(3, ((1, 2), (2, 3)), "Three brokers in a line."),
    "tree": Template(6, ((1, 2), (1, 3), (2, 4), (2, 5), (3, 6)), "Six brokers in a tree below B1."),
    "single": Template(1, (), "One broker."),
}

_HEAD = """\
# {about} Written by `sojourn init {name}`.
# Run all brokers:  sojourn serve FILE --all
# Run one of them:  sojourn serve FILE --broker B1
# Every broker reads this same file. What stands in a comment as `key = value` is what holds without it, or
# an example. Paths begin at the folder of this file, wherever a broker is started. A port of 0 is any that is
# free: a broker says which it became in the folder `addresses`, and neighbours look there.

# Between which brokers there is a connection. Loops are fine: routing uses a tree of them.
links = [{links}]

[mobility]
# What happens to the session of a client that moves to another broker:
#   proactive  copies wait one hop ahead of it      reactive  fetched when it arrives
#   durable    every broker keeps its own
subscribers = "proactive"
# How many seconds a session is kept at the most for a client that is away, with its subscriptions and what is
# stored for it, whatever the client asked for and the limits below say. One that stays away for longer begins
# anew: CONNACK tells it that, and clients of MQTT 5 also how long it is. A larger number costs room:
timeout_s = 3600
# For how many seconds a client is told to try again while its session may be at a broker out of reach; after
# that it begins anew:
give_up_s = 300
# For how many seconds a client is away before copies begin to store for it:
grace_s = 0.05
# For publishers: standard, prefetching, proxy, delayed, or several joined by +.
publishers = "standard"
# Between which brokers clients move: brokers learn it as clients do, or begin with their links.
graph = "crossed"             # or "links"
{copies}
# Where copies wait once `sojourn learn` has found out where clients go (it writes a file beside this one):
# [prediction]
# share = 0.9                 # of where clients went next; copies wait at the fewest brokers that cover it
# order = 2                   # 1: by where a client is; 2: also by where it came from
# evidence_min = 10           # moves from which on a path, or an hour of the day, is relied on

{network}# control = "control"         # where `sojourn reload`, `kick` and `ban` speak to brokers
# addresses = "addresses"     # where brokers with a port of 0 say which it became

[routing]
# content: events go where a subscription wants them; flooding: to every broker.
mode = "content"
covering = true

[security]
# Clients without a user name are let in where a broker listens on loopback only, each address by itself. To
# let them in elsewhere too, say so here, or for one address at its broker below:
# anonymous = true
# Whether what clients say of their own attributes counts for access policies; without this line only what
# anonymous ones say does, and that only where nobody can prove a name by password, token or certificate.
# clients_state_attributes = true
# Web pages that may connect (see `listen_ws` below); without this line those of the broker's own host.
# origins = ["https://example.org"]
# A log of what brokers refused, to whom and why; each has a file in this folder, and none grows for ever:
# audit = "audit"

# What clients without a user name may do; a topic or topic filter outside is refused as not authorised.
# [security.guests]
# publish = ["public/#"]
# subscribe = ["public/#"]

# Tokens as passwords: their claims say who the bearer is and what it may do.
# [security.jwt]
# key = "jwt.key"
# algorithm = "HS256"

# Somebody who may connect; `sojourn password` prints what belongs into `password`. Users keep nobody out: on
# loopback, clients without a user name still may do anything, unless `anonymous = false` stands in [security]
# above, or [security.guests] says what they may do.
# [[users]]
# name = "ambulance-7"
# password = "scrypt$…"
# attributes = {{ role = "medic", clearance = 3 }}
# publish = ["city/+/incidents"]
# subscribe = ["city/#"]

# Certificates for clients (see `listen_tls` below) and between brokers; {{broker}} is the broker's name.
# OpenSSL makes them, as docs/guides/secure.md shows, and deploy/prepare.py those of brokers.
# [tls]
# certificate = "certificates/{{broker}}.pem"
# key = "certificates/{{broker}}.key"
# authority = "certificates/authority.pem" # whose certificates brokers accept from one another
# peers = true                             # whether the links between brokers are encrypted too
# client_authority = "certificates/clients.pem"   # whose certificates prove names of clients

# What happened, as tables that `sojourn audit FOLDER` reads.
# [trace]
# folder = "trace"
# run = "live"
# sample = 1.0                # the share of events that is traced

[limits]
# The defaults, where you may want others:
# connections_max = 20000
# connections_address_max = 10000 # of one address, 0 for any number; more are refused (0x97)
# connects_per_s_max = 2000       # of one address, 0 for any number; faster ones are refused (0x9F)
# logins_waiting_max = 100        # passwords of one address that wait to be compared; more are refused (0x9F)
# login_pause_max_s = 5.0         # after wrong passwords of one address for one user
# publishes_per_s_max = 0         # of one client, 0 for any number; who sends more is disconnected (0x96)
# subscriptions_max_all = 1000000 # of all clients of a broker; more are refused (0x97)
# subscriptions_address_max = 500000 # of the connected clients of one address; more are refused (0x97)
# subscribes_per_s_max = 100      # of one client, after twice subscriptions_max at once (0x97)
# subscribes_address_per_s_max = 20000 # of the clients of one address; more are refused (0x97)
# packet_timeout_s = 60           # a packet that has not come whole by then ends its connection (0x97)
# input_bytes_address_max = 67108864 # of packets of one address that are not whole; the largest gives way
# packet_bytes_max = 2097152
# connect_bytes_max = 262144      # of a CONNECT, which comes before any password was compared
# user_properties_max = 1024      # of one packet; who sends more is disconnected (0x97)
# topic_filters_max = 10000       # of one SUBSCRIBE or UNSUBSCRIBE; the same
# subscriptions_max = 1000        # of one client
# subscription_levels_max = 20000 # levels of all topic filters of one client; more are refused (0x97)
# subscription_levels_address_max = 5000000 # the same of the connected clients of one address
# subscription_levels_max_all = 10000000 # the same of all clients of a broker
# shared_subscriptions_max = 100  # of one client
# groups_max_all = 1000           # that share subscriptions; who begins another one is refused (0x97)
# groups_address_max = 500        # the same of clients of one address, of those that are away too
# member_filter_chars_max_all = 250000 # of filters of members of those; more are refused (0x97)
# member_filter_chars_address_max = 125000 # the same of clients of one address, of those that are away too
# filters_max = 200               # of one client
# queue_messages_max = 100000     # waiting for one client
# queue_messages_max_all = 1000000 # waiting for all clients
# queue_messages_address_max = 500000 # waiting for the clients of one address; more is dropped
# queue_bytes_max = 16777216      # waiting for one client
# queue_bytes_max_all = 536870912 # waiting for all clients
# queue_bytes_address_max = 268435456 # waiting for the connected clients of one address; more is dropped
# output_bytes_address_max = 67108864 # put out for one address and not read; then more waits in queues
# will_bytes_max_all = 67108864   # of the wills of all clients; who brings more is refused (0x97)
# will_bytes_address_max = 33554432 # of those of one address, of clients that are away too
# retained_messages_max = 100000  # topics with a retained message; more are refused (0x97)
# retained_messages_address_max = 50000 # of those that clients of one address published, at any broker
# retained_bytes_max = 268435456
# retained_bytes_address_max = 134217728
# keep_alive_max_s = 60           # a longer keep-alive is shortened to this; with 0 none is
# session_expiry_max_s = 2592000  # in a network never longer than `timeout_s` above
# old_session_expiry_s = 604800   # of MQTT 3.1.1 clients, which cannot say how long; in a network as above
"""

_COPIES = """\
# How many other brokers hold a copy of what each one promises, so that it may be lost with its disk: then
# another one plays it, and nothing is lost. A majority of all brokers has to run. With 0 each has its own
# store alone, and serves by itself whoever else is there. Brokers `join` and `leave` while others run, with
# copies and without:
copies = {copies}
# After how many seconds a broker that is away or silent is thought gone, and another plays it from a copy:
# gone_s = 4.0
"""

_NETWORK = """\
[network]
# Neighbours prove to each other that they know this secret, which `sojourn init` wrote beside this file; the
# brokers on every machine need the same one. With [tls] below they can do without.
secret = "network.secret"
# name = "sojourn"            # a broker of a network with another name is no neighbour
"""

_NO_NETWORK = """\
# [network]
# secret = "network.secret"   # by which neighbours know each other; `sojourn secret` writes one
# name = "sojourn"            # a broker of a network with another name is no neighbour
"""

_PEERS = """
peers = "127.0.0.1:{peers}"
seats = "127.0.0.1:{seats}"     # where other brokers connect to keep copies\
"""

_BROKER = """
[[brokers]]
name = "B{number}"
listen = "127.0.0.1:{client_port}"{peers}{page}
# anonymous = true              # whether clients without a name come in here, on loopback by default
# listen_tls = "127.0.0.1:{tls_port}"
# anonymous_tls = true
# certificates = "optional"     # clients of `listen_tls` prove their names by certificates; or "required"
# listen_ws = "127.0.0.1:{ws_port}"    # WebSockets, for web pages; listen_wss with [tls]
# anonymous_ws = true
metrics = "127.0.0.1:{metrics_port}"
{store}"""

_STORE = """\
store = "stores/B{number}"
# power_safe = false
"""

_FIRST_STORE = """\
# The folder that keeps sessions and everything acknowledged over a restart; without it all is in memory.
store = "stores/B{number}"
# What was acknowledged survives the death of the broker's process, also by kill -9. With `power_safe` it
# survives the loss of power too: every commit then waits for the disk, which costs a publisher milliseconds
# for each answer it waits for.
# power_safe = false
"""

_PAGE = """
# The page for people, and /metrics, /healthz and /readyz for machines; `metrics` serves the latter alone, at
# every broker. The page shows all of them, so one is enough; whoever reaches it reads the names of clients.
page = "127.0.0.1:{port}"
# page_password = "scrypt$…"    # as `sojourn password` prints it; needed where others can reach the page\
"""


def copies_for(brokers: int) -> int:
    """Return how many copies a network of so many brokers begins with."""
    return COPIES if brokers >= BROKERS_FOR_COPIES_MIN else 0


def template(name: str, copies: int | None = None) -> str:
    """Return a configuration as text, or refuse a name that there is none of."""
    found = TEMPLATES.get(name)
    if found is None:
        raise TemplateError(f"There is no template {name!r}; there are {', '.join(TEMPLATES)}.")
    links = ", ".join(f'["B{one}", "B{other}"]' for one, other in found.links)
    network = _NETWORK if found.links else _NO_NETWORK
    if copies is None:
        copies = copies_for(found.brokers)
    if copies < 0:
        raise TemplateError(f"There cannot be {copies} copies; 0 writes a configuration without any.")
    if copies >= found.brokers:
        raise TemplateError(f"{name} has {found.brokers} brokers, and so at most {found.brokers - 1} copies.")
    about_copies = _COPIES.format(copies=copies) if found.links else ""
    text = _HEAD.format(about=found.about, name=name, links=links, network=network, copies=about_copies)
    for number in range(1, found.brokers + 1):
        peer_port = FIRST_PEER_PORT + number - 1
        text += _BROKER.format(
            number=number,
            client_port=FIRST_CLIENT_PORT + number - 1,
            peers=_PEERS.format(peers=peer_port, seats=FIRST_SEATS_PORT + number - 1) if found.links else "",
            tls_port=FIRST_TLS_PORT + number - 1,
            ws_port=FIRST_WS_PORT + number - 1,
            page=_PAGE.format(port=PAGE_PORT) if number == 1 else "",
            metrics_port=FIRST_METRICS_PORT + number - 1,
            store=(_FIRST_STORE if number == 1 else _STORE).format(number=number),
        )
    return text
