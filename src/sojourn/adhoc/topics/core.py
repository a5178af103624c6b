"""Broker and rendezvous by topic (paper 004, sections 3.2, 3.4 and 3.5): what a node does for its topics.

- A subscriber sends its subscription to the topic's home again and again: its place, what it wants, what it
  may see. Whoever receives it there stores it; near a place it also repeats it once to all its neighbours, so
  that everybody within K of the place has all subscriptions, whoever is nearest.
- Broker: a publisher sends an event to the home. One node takes it, matches it (topic, content and the policy
  that the event carries), and sends it to each subscriber that passes.
- Rendezvous: a publisher advertises to the home again and again and is sent the list of the topic's
  subscriptions, unmatched. It matches its own events and sends them straight to subscribers. Or (`waits`) it
  advertises when it publishes, and holds the event until the list is there.

An event goes to a subscriber only if its value is wanted and the subscriber's clearance is at least the
event's. A node matches an event once, and gives its application an event once.
"""

from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import (
    ADVERTISE,
    DATA,
    DELIVER,
    DELIVERY,
    EVENT,
    EVERYBODY,
    HAD_IT,
    ITEMS_MAX,
    LIST,
    REPLICA,
    ROUTE,
    SEND,
    SUBSCRIBE,
    Effects,
    Packet,
    Record,
    emit,
    emit_new,
    lose,
)
from sojourn.adhoc.topics.state import (
    ADVERTISE_BYTES,
    EVENT_HEADER_BYTES,
    GIVEN,
    HANDLED,
    KEPT_MAX,
    LIST_BYTES,
    LIST_ITEM_BYTES,
    SUBSCRIBE_BYTES,
    Topics,
    has_seen,
    keep,
    remember,
)


@inner
def _sized(rules: Record, what: int, size: int) -> int:
    """How many bytes a message has above the routing header; what carries an event has the event's."""
    if rules.message_bytes > 0 and what in (SUBSCRIBE, ADVERTISE, LIST):
        return int(rules.message_bytes) + EVENT_HEADER_BYTES
    return size


@inner
def to_home(topics: Topics, node: int, topic: int, what: int, size: int, now_s: float, out: Effects) -> int:
    """A new packet to a topic's home; its row."""
    rules, home = topics.stations[node], topics.topics[topic]
    at = emit_new(out, node, DATA, ROUTE, now_s)
    row = out.rows[at]
    row.what, row.topic = what, topic
    row.goal = EVERYBODY if rules.geographic != 0 else home.home
    row.goal_x, row.goal_y = home.x, home.y
    row.ttl = rules.ttl
    row.bytes = _sized(rules, what, size) + rules.header_bytes
    return at


@inner
def to_node(topics: Topics, node: int, goal: int, what: int, size: int, now_s: float, out: Effects) -> int:
    """A new packet to a node; its row. Over GPSR the caller adds the place."""
    rules = topics.stations[node]
    at = emit_new(out, node, DATA, ROUTE, now_s)
    row = out.rows[at]
    row.what = what
    row.goal = goal
    row.ttl = rules.ttl
    row.bytes = _sized(rules, what, size) + rules.header_bytes
    return at


@inner
def subscribe(
    topics: Topics, node: int, subscription: int, x: float, y: float, now_s: float, out: Effects
) -> int:
    """Send a subscription to its home; the packet's row."""
    wanted = topics.subscriptions[subscription]
    at = to_home(topics, node, wanted.topic, SUBSCRIBE, SUBSCRIBE_BYTES, now_s, out)
    row = out.rows[at]
    row.subscription = subscription
    row.value, row.clearance = wanted.least, wanted.clearance
    row.source_x, row.source_y = x, y
    return at


@inner
def advertise(topics: Topics, node: int, topic: int, x: float, y: float, now_s: float, out: Effects) -> None:
    """Ask the home of a topic who subscribes to it."""
    row = out.rows[to_home(topics, node, topic, ADVERTISE, ADVERTISE_BYTES, now_s, out)]
    row.source_x, row.source_y = x, y


@inner
def publish(topics: Topics, node: int, event: Record, x: float, y: float, now_s: float, out: Effects) -> None:
    """Publish an event; it is a row with `event`, `topic`, `value`, `clearance` and `bytes`."""
    size = EVENT_HEADER_BYTES + event.bytes
    row = out.rows[to_home(topics, node, event.topic, EVENT, size, now_s, out)]
    row.event, row.value, row.clearance = event.event, event.value, event.clearance
    row.source_x, row.source_y = x, y
    if topics.stations[node].rendezvous != 0:
        row.effect = 0  # it goes nowhere but to subscribers
        if topics.stations[node].waits != 0:
            keep(topics, node, row, row.bytes)
            advertise(topics, node, event.topic, x, y, now_s, out)
        else:
            _match(topics, node, row, 0, now_s, out)


# ------------------------------------------------------------------------------ what arrives


@inner
def arrived(
    topics: Topics, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects
) -> None:
    """Take in a packet that has reached its goal, or a repetition by a neighbour."""
    what = packet.what
    if what == SUBSCRIBE:
        _store(topics, node, packet, now_s)
        if topics.stations[node].proximity != 0:
            row = out.rows[emit(out, packet, SEND)]
            row.what, row.sender, row.to = REPLICA, node, EVERYBODY
            row.x, row.y = x, y
    elif what == REPLICA:
        _store(topics, node, packet, now_s)
    elif what == ADVERTISE:
        _answer(topics, node, packet, now_s, out)
    elif what == LIST:
        _learn(topics, node, packet, now_s)
        if topics.stations[node].waits != 0:
            _send_held(topics, node, packet.topic, now_s, out)
    elif what == EVENT:
        _match(topics, node, packet, packet.hops, now_s, out)
    elif what == DELIVERY:
        if has_seen(topics, node, packet.event, GIVEN):
            lose(out, packet, HAD_IT)
        else:
            remember(topics, node, packet.event, GIVEN, packet.topic, now_s)
            emit(out, packet, DELIVER)


@inner
def _store(topics: Topics, node: int, packet: Packet, now_s: float) -> None:
    entry = topics.stored[node, packet.subscription]
    entry.node, entry.clearance, entry.least = packet.origin, packet.clearance, packet.value
    entry.x, entry.y = packet.source_x, packet.source_y
    entry.expires_s = now_s + topics.stations[node].soft_state_s


@inner
def _answer(topics: Topics, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    """Send a publisher the list of a topic's subscriptions, as many packets as that takes."""
    topic = topics.topics[packet.topic]
    at = -1
    for number in range(topic.first, topic.end):
        entry = topics.stored[node, number]
        if entry.expires_s <= now_s:
            continue
        if at < 0 or out.rows[at].count >= ITEMS_MAX:
            at = to_node(topics, node, packet.origin, LIST, LIST_BYTES, now_s, out)
            row = out.rows[at]
            row.topic = packet.topic
            row.goal_x, row.goal_y = packet.source_x, packet.source_y
        row = out.rows[at]
        item = row.items[row.count]
        item[0], item[1], item[2], item[3] = number, entry.node, entry.x, entry.y
        item[4], item[5], item[6] = entry.expires_s, entry.least, entry.clearance
        row.count += 1
        if topics.stations[node].message_bytes == 0:
            row.bytes += LIST_ITEM_BYTES


@inner
def _learn(topics: Topics, node: int, packet: Packet, now_s: float) -> None:
    """Take a list in; an entry that this node knows better stays."""
    lasts_s = topics.stations[node].list_s
    for at in range(packet.count):
        item = packet.items[at]
        entry = topics.stored[node, int(item[0])]
        until_s = max(item[4], now_s + lasts_s) if lasts_s > 0 else item[4]
        if until_s <= entry.expires_s:
            continue
        entry.node, entry.clearance = int(item[1]), int(item[6])
        entry.x, entry.y, entry.expires_s, entry.least = item[2], item[3], until_s, item[5]


@inner
def _send_held(topics: Topics, node: int, topic: int, now_s: float, out: Effects) -> None:
    """A list has come: send the events of its topic that wait for one, each once."""
    for at in range(KEPT_MAX):
        kept = topics.kept[node, at]
        if kept.event >= 0 and kept.topic == topic and now_s - kept.made_s <= topics.stations[node].keep_s:
            _match(topics, node, kept, 0, now_s, out)


@inner
def passes(entry: Record, event: Record) -> bool:
    """Whether content and policy let an event through to a subscription; the topic is the caller's."""
    return bool(event.value >= entry.least and entry.clearance >= event.clearance)


@inner
def _match(topics: Topics, node: int, packet: Record, hops: int, now_s: float, out: Effects) -> None:
    """Send an event to every subscription known here that it passes, if that was not done before."""
    if has_seen(topics, node, packet.event, HANDLED):
        return
    remember(topics, node, packet.event, HANDLED, packet.topic, now_s)
    topic = topics.topics[packet.topic]
    for number in range(topic.first, topic.end):
        entry = topics.stored[node, number]
        if entry.expires_s > now_s and passes(entry, packet):
            # An event's hops are counted from its publisher, also where it changes hands.
            out.rows[send_event(topics, node, number, packet, now_s, out)].hops = hops


@inner
def send_event(topics: Topics, node: int, number: int, event: Record, now_s: float, out: Effects) -> int:
    """Send an event to one subscriber, where it was last known to be; the packet's row."""
    entry = topics.stored[node, number]
    at = to_node(topics, node, entry.node, DELIVERY, 0, now_s, out)
    row = out.rows[at]
    row.bytes = event.bytes
    row.topic, row.subscription, row.event = event.topic, number, event.event
    row.value, row.clearance = event.value, event.clearance
    row.goal_x, row.goal_y = entry.x, entry.y
    row.made_s = event.made_s
    row.lifetime_s = entry.expires_s - now_s  # of the subscription when it was matched
    return at
