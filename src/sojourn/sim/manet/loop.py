"""The compiled loop of a mobile ad-hoc network: takes what is next, tells the node concerned, carries out.

The driver decides nothing for a protocol: it feeds the cores of `adhoc.topics.node` with facts (a frame was
received, a link broke, a timer fired, the application acts) and carries out their effects.
"""

from sojourn.adhoc.kernels import entry, hot, inner
from sojourn.adhoc.packets import DELIVER, DELIVERY, EVERYBODY, LOST, REQUEST, SEND, TIMER
from sojourn.adhoc.topics import node as node_core
from sojourn.sim.manet.geometry import find_neighbours
from sojourn.sim.manet.heap import draw, drop_first, next_heap, plan
from sojourn.sim.manet.mac import (
    arm,
    contend,
    end_of_air,
    enqueue,
    finish,
    give_back,
    note_end,
    take_packet,
    transmit_ack,
    transmit_packet,
)
from sojourn.sim.manet.state import (
    ACK_DUE,
    ACK_MISSED,
    ACK_S,
    ADVERTISEMENT_DUE,
    AGAIN_TIMER,
    AIR_END,
    ATTEMPT,
    ATTEMPTS_MAX,
    AWAITING,
    BROKEN,
    CCA_S,
    DUPLICATES,
    ENQUEUE,
    HAPPENED,
    HOPS_WALKED,
    MATCHED,
    NEXT_EVENT,
    OVERFLOW,
    PERIOD,
    PUBLICATION_DUE,
    QUEUE_MAX,
    RETRIED,
    SEARCH_TIMER,
    SIFS_S,
    SLOT_S,
    STALE_SENT,
    SUBSCRIPTION_DUE,
    TAKEN_MAX,
    TICK,
    TICKS,
    UNAUTHORISED,
    WAITING,
    WINDOW_MAX,
    Net,
)

# ------------------------------------------------------------------------------ effects


@inner
def _carry_out(net: Net, node: int) -> None:
    """Carry out the effects in the buffer and empty it."""
    out = net.out
    for at in range(out.filled[0]):
        row = out.rows[at]
        if row.effect == SEND:
            _send(net, node, at)
        elif row.effect == DELIVER:
            _deliver(net, node, at)
        elif row.effect == LOST:
            net.run[0].lost[row.kind, row.what, row.reason] += 1
        elif row.effect == TIMER:
            due_s = net.run[0].now_s + row.delay_s
            if row.kind == REQUEST:
                plan(net, due_s, SEARCH_TIMER, node, row.goal, row.token * 2 + row.tries)
            else:
                plan(net, due_s, AGAIN_TIMER, node, row.event, row.tries + 1)
    net.run[0].numbers[OVERFLOW] += out.filled[1]
    out.filled[0] = out.filled[1] = 0


@inner
def _send(net: Net, node: int, at: int) -> None:
    row = net.out.rows[at]
    if row.what == DELIVERY and row.origin == node:
        _note_age(net, node, row.subscription, row.lifetime_s)
    packet = take_packet(net)
    if packet < 0:
        net.run[0].numbers[OVERFLOW] += 1
        return
    net.pool[packet] = row
    net.pool[packet].delay_s = 0.0
    if row.delay_s > 0:
        plan(net, net.run[0].now_s + row.delay_s, ENQUEUE, node, packet, 0)
    else:
        enqueue(net, node, packet)


@inner
def _note_age(net: Net, node: int, subscription: int, left_s: float) -> None:
    """Note how old the subscription is by which an event is sent, above all that of a silent subscriber."""
    run = net.run[0]
    age_s = net.cores.topics.stations[node].soft_state_s - left_s
    run.numbers[MATCHED] += 1
    run.age_s += age_s
    if net.cores.topics.subscriptions[subscription].silent != 0 and run.now_s > run.silent_s:
        run.numbers[STALE_SENT] += 1
        run.stale_s = max(run.stale_s, age_s)


@inner
def _deliver(net: Net, node: int, at: int) -> None:
    """An application was given an event: note when, and whether it should have been."""
    row = net.out.rows[at]
    wanted = net.cores.topics.subscriptions[row.subscription]
    event = net.publications[row.event]
    allowed = (
        wanted.node == node
        and wanted.topic == event.topic
        and event.value >= wanted.least
        and wanted.clearance >= event.clearance
    )
    if not allowed:
        net.run[0].numbers[UNAUTHORISED] += 1
    elif net.delivered_s[row.event, row.subscription] == net.delivered_s[row.event, row.subscription]:
        net.run[0].numbers[DUPLICATES] += 1
    else:
        net.delivered_s[row.event, row.subscription] = net.run[0].now_s
        net.run[0].numbers[HOPS_WALKED] += row.hops


# ------------------------------------------------------------------------------ the radio


@hot
def _on_attempt(net: Net, node: int, token: int) -> None:
    mac = net.macs[node]
    if mac.state == WAITING and mac.armed != 0 and mac.token == token:
        if mac.transmitting != 0:
            mac.armed = 0  # its acknowledgement is still in the air; it counts down again afterwards
            return
        transmit_packet(net, node)


@hot
def _on_air_end(net: Net, slot: int) -> None:
    air = net.air[slot]
    sender, packet, to, frame = air.node, air.packet, air.to, air.frame
    ideal = net.run[0].ideal != 0
    end_of_air(net, slot)
    for n in range(air.near_count if ideal else note_end(net, slot)):
        other = net.air[slot].near[n if ideal else net.cells[n]]
        heard = other < 0
        if heard:
            other = -1 - other
        mac = net.macs[other]
        if not ideal:
            heard = mac.hearing == slot and mac.clear != 0
            if mac.hearing == slot:
                mac.hearing = -1
        if heard:
            if packet < 0:
                if to == other and mac.state == AWAITING and mac.frame == frame:
                    finish(net, other)
            else:
                _received(net, other, sender, packet, frame)
        if mac.sensed == 0 and mac.state == WAITING:
            arm(net, other)
    if packet < 0:
        arm(net, sender)
        return
    if to == EVERYBODY:
        finish(net, sender)
        return
    mac = net.macs[sender]
    mac.state = AWAITING
    mac.token += 1
    plan(net, net.run[0].now_s + SIFS_S + ACK_S + SLOT_S + CCA_S, ACK_MISSED, sender, mac.token, 0)


@hot
def _received(net: Net, node: int, sender: int, packet: int, frame: int) -> None:
    record = net.pool[packet]
    if record.to == node:
        plan(net, net.run[0].now_s + SIFS_S, ACK_DUE, node, sender, frame)
        if _was_taken(net, node, frame):
            return  # the acknowledgement was lost, not the frame
    node_core.receive(
        net.cores, node, net.macs[node].x, net.macs[node].y, record, net.run[0].now_s, draw(net), net.out
    )
    if net.out.filled[0] > 0:  # most of what is heard is for others
        _carry_out(net, node)


@hot
def _was_taken(net: Net, node: int, frame: int) -> bool:
    """Whether a frame was taken before; now it is."""
    mac = net.macs[node]
    for at in range(TAKEN_MAX):
        if mac.taken[at] == frame:
            return True
    mac.taken[mac.taken_at] = frame
    mac.taken_at = (mac.taken_at + 1) % TAKEN_MAX
    return False


@inner
def _on_ack_missed(net: Net, node: int, token: int) -> None:
    mac = net.macs[node]
    if mac.state != AWAITING or mac.token != token:
        return
    if mac.retries + 1 < ATTEMPTS_MAX:
        mac.retries += 1
        net.run[0].numbers[RETRIED] += 1
        mac.window = min(2 * mac.window + 1, WINDOW_MAX)
        contend(net, node)
        return
    net.run[0].numbers[BROKEN] += 1
    neighbour = net.pool[net.macs[node].queue[mac.head]].to
    _link_broke(net, node, net.macs[node].queue[mac.head])
    _drop_waiting_for(net, node, neighbour)
    finish(net, node)


@inner
def _link_broke(net: Net, node: int, packet: int) -> None:
    node_core.link_broke(
        net.cores, node, net.macs[node].x, net.macs[node].y, net.pool[packet], net.run[0].now_s, net.out
    )
    _carry_out(net, node)


@inner
def _drop_waiting_for(net: Net, node: int, neighbour: int) -> None:
    """What else waits for a neighbour that is gone goes back to the layer above at once, as in ns-2."""
    mac = net.macs[node]
    waiting = mac.count
    kept = 1  # the head is being finished by the caller
    for at in range(1, waiting):
        packet = net.macs[node].queue[(mac.head + at) % QUEUE_MAX]
        if net.pool[packet].to == neighbour:
            # The answer may join the end of the queue while we read it; room for it is made first.
            _link_broke(net, node, packet)
            give_back(net, packet)
        else:
            net.macs[node].queue[(mac.head + kept) % QUEUE_MAX] = packet
            kept += 1
    added = mac.count - waiting
    for at in range(added):
        source = net.macs[node].queue[(mac.head + waiting + at) % QUEUE_MAX]
        net.macs[node].queue[(mac.head + kept) % QUEUE_MAX] = source
        kept += 1
    mac.count = kept


# ------------------------------------------------------------------------------ timers


@inner
def _on_period(net: Net, node: int) -> None:
    node_core.on_period(net.cores, node, net.macs[node].x, net.macs[node].y, net.run[0].now_s, net.out)
    _carry_out(net, node)
    work = net.run[0]
    spread = work.period_spread * (2 * draw(net) - 1)
    plan(net, net.run[0].now_s + work.period_s * (1 + spread), PERIOD, node, 0, 0)


@inner
def _on_subscription(net: Net, number: int) -> None:
    now_s, work = net.run[0].now_s, net.run[0]
    if net.cores.topics.subscriptions[number].silent != 0 and now_s >= work.silent_s:
        return
    node = net.cores.topics.subscriptions[number].node
    node_core.subscribe(net.cores, node, number, net.macs[node].x, net.macs[node].y, now_s, net.out)
    _carry_out(net, node)
    plan(net, now_s + work.subscribe_s, SUBSCRIPTION_DUE, number, 0, 0)


@inner
def _on_advertisement(net: Net, number: int) -> None:
    now_s = net.run[0].now_s
    node, topic = net.advertisers[number, 0], net.advertisers[number, 1]
    node_core.advertise(net.cores, node, topic, net.macs[node].x, net.macs[node].y, now_s, net.out)
    _carry_out(net, node)
    plan(net, now_s + net.run[0].advertise_s, ADVERTISEMENT_DUE, number, 0, 0)


@inner
def _publish(net: Net, event: int, tries: int) -> None:
    row = net.publications[event]
    node = row.node
    node_core.publish(
        net.cores, node, row, tries, net.macs[node].x, net.macs[node].y, net.run[0].now_s, net.out
    )
    _carry_out(net, node)


@inner
def _on_publication(net: Net) -> None:
    event = net.run[0].numbers[NEXT_EVENT]
    net.run[0].numbers[NEXT_EVENT] = event + 1
    _publish(net, event, 1)
    if event + 1 < len(net.publications):
        plan(net, net.publications[event + 1].made_s, PUBLICATION_DUE, 0, 0, 0)


@inner
def _on_search_timer(net: Net, node: int, goal: int, token: int) -> None:
    # The timer is handed to the core as the row it came in.
    row = net.out.rows[len(net.out.rows) - 1]
    row.kind, row.goal, row.token, row.tries = REQUEST, goal, token // 2, token % 2
    node_core.on_timer(net.cores, node, net.macs[node].x, net.macs[node].y, row, net.run[0].now_s, net.out)
    _carry_out(net, node)


@inner
def _on_tick(net: Net) -> None:
    tick = net.run[0].numbers[TICKS]
    net.run[0].numbers[TICKS] = tick + 1
    if tick < len(net.track):
        for node in range(len(net.macs)):
            net.macs[node].x = net.track[tick, node, 0]
            net.macs[node].y = net.track[tick, node, 1]
        find_neighbours(net)
        plan(net, (tick + 1) * net.run[0].tick_s, TICK, 0, 0, 0)


# ------------------------------------------------------------------------------ the loop


@hot
def _happen_on_air(net: Net, kind: int, a: int, b: int, c: int) -> bool:
    """Things of the radio; whether it was one."""
    if kind == ATTEMPT:
        _on_attempt(net, a, b)
    elif kind == AIR_END:
        _on_air_end(net, a)
    elif kind == ACK_DUE:
        transmit_ack(net, a, b, c)
    elif kind == ACK_MISSED:
        _on_ack_missed(net, a, b)
    elif kind == ENQUEUE:
        enqueue(net, a, b)
    else:
        return False
    return True


@inner
def _happen_by_timer(net: Net, kind: int, a: int, b: int, c: int) -> None:
    if kind == TICK:
        _on_tick(net)
    elif kind == PERIOD:
        _on_period(net, a)
    elif kind == SUBSCRIPTION_DUE:
        _on_subscription(net, a)
    elif kind == ADVERTISEMENT_DUE:
        _on_advertisement(net, a)
    elif kind == PUBLICATION_DUE:
        _on_publication(net)
    elif kind == SEARCH_TIMER:
        _on_search_timer(net, a, b, c)
    elif kind == AGAIN_TIMER:
        _publish(net, b, c)


@entry
def start(net: Net) -> None:
    """Plan each node's first beacon and each client's first act, at a moment of its own."""
    plan(net, 0.0, TICK, 0, 0, 0)
    work = net.run[0]
    for node in range(len(net.macs)):
        plan(net, draw(net) * work.period_s, PERIOD, node, 0, 0)
    for number in range(len(net.cores.topics.subscriptions)):
        plan(net, draw(net) * work.subscribe_s, SUBSCRIPTION_DUE, number, 0, 0)
    for number in range(len(net.advertisers)):
        plan(net, draw(net) * work.advertise_s, ADVERTISEMENT_DUE, number, 0, 0)
    if len(net.publications) > 0:
        plan(net, net.publications[0].made_s, PUBLICATION_DUE, 0, 0, 0)


@entry
def run_until(net: Net, until_s: float, events_max: int) -> int:
    """Let happen what is due before a time, but no more than so many events; how many did."""
    happened = 0
    while happened < events_max:
        which = next_heap(net)
        if which < 0:
            break
        first = net.heap[which, 0]
        if first.time_s >= until_s:
            break
        kind, a, b, c = first.kind, first.a, first.b, first.c
        net.run[0].now_s = first.time_s
        drop_first(net, which)
        if not _happen_on_air(net, kind, a, b, c):
            _happen_by_timer(net, kind, a, b, c)
        happened += 1
    net.run[0].numbers[HAPPENED] += happened
    if happened < events_max:
        net.run[0].now_s = max(net.run[0].now_s, until_s)
    return happened
