"""The radio of a mobile ad-hoc network: CSMA/CA as in 802.11, with acknowledged unicast, frame by frame.

What is modelled: carrier sense up to 550 m; DIFS and a back-off that freezes while the medium is busy; a
window that doubles with every missing acknowledgement; acknowledgements as frames of their own after SIFS;
collisions at the receiver, with capture of a frame ten times as strong as whatever else is in the air there;
nodes that begin within the same 15 us; unicast given up after seven attempts, which the layer above is told;
broadcast sent once and never acknowledged; a queue of fifty.

What is simplified: every frame is preceded by a random back-off, also after long silence; no RTS/CTS and
hence no virtual carrier sense; no EIFS; frames travel in no time; who is in range is settled when a frame
begins; a frame is received within 250 m and never beyond; routing messages have no priority in the queue;
places change in ticks (0.1 s).
"""

from sojourn.adhoc.kernels import hot, inner
from sojourn.adhoc.packets import DATA, EVERYBODY, PERIMETER, QUEUE_FULL
from sojourn.sim.manet.geometry import strength
from sojourn.sim.manet.heap import draw, plan
from sojourn.sim.manet.state import (
    ACK_BYTES,
    ACTIVE,
    AIR_END,
    AIR_MAX,
    ATTEMPT,
    BITS_PER_S,
    CCA_S,
    COLLISIONS,
    DIFS_S,
    FRAMES,
    FRAMES_SENT,
    FREE,
    FREE_PACKETS,
    HOPS_LOGGED,
    MAC_BYTES,
    OVERFLOW,
    PREAMBLE_S,
    QUEUE_MAX,
    SENDING,
    SLOT_S,
    WAITING,
    WINDOW_MIN,
    Net,
)

# ------------------------------------------------------------------------------ packets and queues


@inner
def take_packet(net: Net) -> int:
    """A free packet of the pool; -1 if there is none."""
    left = net.run[0].numbers[FREE_PACKETS]
    if left == 0:
        return -1
    net.run[0].numbers[FREE_PACKETS] = left - 1
    return int(net.free[left - 1])


@inner
def give_back(net: Net, packet: int) -> None:
    """Make a packet of the pool free again."""
    left = net.run[0].numbers[FREE_PACKETS]
    net.free[left] = packet
    net.run[0].numbers[FREE_PACKETS] = left + 1


@inner
def enqueue(net: Net, node: int, packet: int) -> None:
    """Give the radio of a node a packet to send; a full queue drops it."""
    mac = net.macs[node]
    if mac.count >= QUEUE_MAX:
        record = net.pool[packet]
        net.run[0].lost[record.kind, record.what, QUEUE_FULL] += 1
        give_back(net, packet)
        return
    net.macs[node].queue[(mac.head + mac.count) % QUEUE_MAX] = packet
    mac.count += 1
    if mac.state == FREE:
        contend(net, node)


@inner
def finish(net: Net, node: int) -> None:
    """The packet at the head is done with, one way or the other: turn to the next."""
    mac = net.macs[node]
    give_back(net, net.macs[node].queue[mac.head])
    mac.head = (mac.head + 1) % QUEUE_MAX
    mac.count -= 1
    mac.retries = 0
    mac.window = WINDOW_MIN
    mac.state = FREE
    mac.token += 1
    if mac.count > 0:
        contend(net, node)


# ------------------------------------------------------------------------------ waiting for the medium


@inner
def contend(net: Net, node: int) -> None:
    """Draw a back-off and wait for the medium."""
    mac = net.macs[node]
    mac.state = WAITING
    mac.armed = 0
    mac.slots = int(draw(net) * (mac.window + 1))
    arm(net, node)


@hot
def arm(net: Net, node: int) -> None:
    """Count down, if the medium is free."""
    mac = net.macs[node]
    busy = mac.sensed > 0 and net.run[0].ideal == 0
    if mac.state != WAITING or mac.armed != 0 or mac.transmitting != 0 or busy:
        return
    mac.armed = 1
    mac.since_s = net.run[0].now_s
    mac.attempt_s = net.run[0].now_s + DIFS_S + mac.slots * SLOT_S
    mac.token += 1
    plan(net, mac.attempt_s, ATTEMPT, node, mac.token, 0)


@hot
def freeze(net: Net, node: int) -> None:
    """Stop counting down, since somebody sends; too late to notice, the attempt goes on."""
    mac = net.macs[node]
    if mac.state != WAITING or mac.armed == 0 or mac.attempt_s - net.run[0].now_s < CCA_S:
        return
    counted_s = net.run[0].now_s - mac.since_s - DIFS_S
    if counted_s > 0:
        # A slot that is over but for rounding is over.
        mac.slots = max(0, mac.slots - int(counted_s / SLOT_S + 1e-6))
    mac.armed = 0
    mac.token += 1


# ------------------------------------------------------------------------------ frames in the air


@hot
def transmit_packet(net: Net, node: int) -> None:
    """Send the packet at the head of a node's queue."""
    mac = net.macs[node]
    packet = net.macs[node].queue[mac.head]
    record = net.pool[packet]
    if mac.retries == 0:
        net.run[0].numbers[FRAMES] += 1
        mac.frame = net.run[0].numbers[FRAMES]
        if net.run[0].now_s >= net.run[0].measure_s:
            net.run[0].sent[record.kind, record.what, 0] += 1
            net.run[0].sent[record.kind, record.what, 1] += record.bytes
        _log(net, node, packet)
    mac.armed = 0
    mac.state = SENDING
    _transmit(net, node, packet, record.to, mac.frame, record.bytes + MAC_BYTES)


@hot
def transmit_ack(net: Net, node: int, to: int, frame: int) -> None:
    """Acknowledge a frame, whatever the medium is doing; not if this node is sending itself."""
    if net.macs[node].transmitting == 0 or net.run[0].ideal != 0:
        freeze(net, node)
        _transmit(net, node, -1, to, frame, ACK_BYTES)


@hot
def _transmit(net: Net, node: int, packet: int, to: int, frame: int, size: int) -> None:
    slot = _free_slot(net)
    if slot < 0:
        net.run[0].numbers[OVERFLOW] += 1
        return
    net.run[0].numbers[FRAMES_SENT] += 1
    air = net.air[slot]
    air.used, air.node, air.packet, air.to, air.frame = 1, node, packet, to, frame
    sender = net.macs[node]
    sender.transmitting = 1
    sender.hearing = -1  # nobody hears while sending
    count = net.macs[node].near_count
    air.near_count = count
    for at in range(count):
        net.air[slot].near[at] = net.hoods[node].near[at]
    if net.run[0].ideal == 0:
        for n in range(_note_begin(net, node)):
            at = net.cells[n]
            other = net.hoods[node].near[at]
            if other < 0:
                _reach(net, slot, -1 - other, net.hoods[node].near_d2[at], 1)
            else:
                _reach(net, slot, other, net.hoods[node].near_d2[at], 0)
    net.run[0].active[net.run[0].numbers[ACTIVE]] = slot
    net.run[0].numbers[ACTIVE] += 1
    plan(net, net.run[0].now_s + PREAMBLE_S + 8 * size / BITS_PER_S, AIR_END, slot, 0, 0)


@hot
def _note_begin(net: Net, node: int) -> int:
    """Have everybody near sense one frame more; how many need a closer look, which `cells` then lists.

    Those are who may receive the frame, who is receiving another, and who counts down. Most are none of it,
    and who is cannot be guessed, so this has no branches.
    """
    found = 0
    for at in range(net.macs[node].near_count):
        near = net.hoods[node].near[at]
        inside = near < 0
        mac = net.macs[-1 - near if inside else near]
        mac.sensed += 1
        net.cells[found] = at
        listens = (mac.transmitting == 0) & (inside | (mac.hearing >= 0))
        found += listens | ((mac.state == WAITING) & (mac.armed != 0))
    return found


@hot
def note_end(net: Net, slot: int) -> int:
    """Have everybody who sensed a frame sense one less; how many have to do something, listed in `cells`.

    Those are who received it, and who waits for the medium and finds it free now.
    """
    found = 0
    for at in range(net.air[slot].near_count):
        near = net.air[slot].near[at]
        mac = net.macs[-1 - near if near < 0 else near]
        mac.sensed -= 1
        net.cells[found] = at
        found += (mac.hearing == slot) | ((mac.sensed == 0) & (mac.state == WAITING))
    return found


@hot
def _reach(net: Net, slot: int, node: int, distance2: float, inside: int) -> None:
    """A frame begins at a node that senses it, and has been counted as sensed."""
    mac = net.macs[node]
    if mac.transmitting == 0:
        power = strength(distance2)
        if mac.hearing >= 0:
            if mac.strength < net.run[0].capture * power and mac.clear != 0:
                mac.clear = 0
                net.run[0].numbers[COLLISIONS] += 1
        elif inside:
            if mac.sensed == 1 or power >= net.run[0].capture * _noise(net, node):
                mac.hearing, mac.strength, mac.clear = slot, power, 1
            else:
                net.run[0].numbers[COLLISIONS] += 1
    freeze(net, node)


@inner
def _noise(net: Net, node: int) -> float:
    """The strongest of the frames in the air as a node senses them."""
    loudest = 0.0
    reach2 = net.run[0].sense_m ** 2
    for at in range(net.run[0].numbers[ACTIVE]):
        other = net.air[net.run[0].active[at]].node
        distance2 = (net.macs[other].x - net.macs[node].x) ** 2 + (net.macs[other].y - net.macs[node].y) ** 2
        if distance2 <= reach2:
            loudest = max(loudest, strength(distance2))
    return loudest


@inner
def _free_slot(net: Net) -> int:
    if net.run[0].numbers[ACTIVE] >= AIR_MAX:
        return -1
    slot = 0
    while net.air[slot].used != 0:
        slot += 1
    return slot


@hot
def end_of_air(net: Net, slot: int) -> None:
    """Take a frame out of the air, before those who received it are told."""
    net.air[slot].used = 0
    for at in range(net.run[0].numbers[ACTIVE]):
        if net.run[0].active[at] == slot:
            net.run[0].numbers[ACTIVE] -= 1
            net.run[0].active[at] = net.run[0].active[net.run[0].numbers[ACTIVE]]
            break
    net.macs[net.air[slot].node].transmitting = 0


@inner
def _log(net: Net, node: int, packet: int) -> None:
    if len(net.hops) == 0:
        return
    record = net.pool[packet]
    hop = net.hops[net.run[0].numbers[HOPS_LOGGED] % len(net.hops)]
    hop.time_s, hop.sender, hop.to = net.run[0].now_s, node, record.to
    hop.kind, hop.what = record.kind, record.what
    hop.mode = record.mode if record.kind == DATA and record.to != EVERYBODY else 0
    hop.topic, hop.event = record.topic, record.event
    net.run[0].numbers[HOPS_LOGGED] += 1


assert PERIMETER == 1, "watchers know perimeter walks by this number"
