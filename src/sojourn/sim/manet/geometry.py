"""Who senses whom: the neighbours of every node within carrier-sense range, found by cells of that size.

Nodes are sorted into square cells by counting; a node's neighbours stand in its own cell and the eight around
it. So a tick costs in proportion to pairs that sense each other, not to all pairs. Beyond the grid's edge,
cells are those at the edge: distances are compared in any case.
"""

from sojourn.adhoc.kernels import inner
from sojourn.sim.manet.state import CROSSOVER_M, NEAR_MAX, OVERFLOW, Net

SIDE = 64
"""Cells a side of the grid."""


@inner
def strength(distance2: float) -> float:
    """Received power by the square of the distance, up to a factor: two-ray ground, nearby free space."""
    near = CROSSOVER_M * CROSSOVER_M
    if distance2 < near:
        return 1.0 / (max(distance2, 1.0) * near)
    return 1.0 / (distance2 * distance2)


@inner
def _cell(value: float, size: float) -> int:
    return int(min(max(value / size, 0.0), SIDE - 1.0))


@inner
def find_neighbours(net: Net) -> None:
    """Work out anew who senses whom, after places changed."""
    size = net.run[0].sense_m
    macs, cells = net.macs, net.cells
    nodes = len(macs)
    starts, order = SIDE * SIDE + 1, SIDE * SIDE + 1 + nodes
    for at in range(starts):
        cells[at] = 0
    for node in range(nodes):
        number = _cell(macs[node].y, size) * SIDE + _cell(macs[node].x, size)
        cells[starts + node] = number
        cells[number + 1] += 1
    for number in range(SIDE * SIDE):
        cells[number + 1] += cells[number]
    # Counting sort: afterwards cells[n + 1] is the start of cell n.
    for node in range(nodes - 1, -1, -1):
        number = cells[starts + node]
        cells[number + 1] -= 1
        cells[order + cells[number + 1]] = node
    for node in range(nodes):
        _scan(net, node, size * size, order)


@inner
def _scan(net: Net, node: int, reach2: float, order: int) -> None:
    cells, macs = net.cells, net.macs
    number = cells[SIDE * SIDE + 1 + node]
    row, column = number // SIDE, number % SIDE
    found = 0
    room = NEAR_MAX
    inside2 = net.run[0].reception_m ** 2
    for near_row in range(max(row - 1, 0), min(row + 2, SIDE)):
        first = near_row * SIDE + max(column - 1, 0)
        last = near_row * SIDE + min(column + 1, SIDE - 1)
        # cells[n + 1] is now the start of cell n.
        end = cells[last + 2] if last + 2 <= SIDE * SIDE else len(macs)
        for at in range(cells[first + 1], end):
            other = cells[order + at]
            distance2 = (macs[other].x - macs[node].x) ** 2 + (macs[other].y - macs[node].y) ** 2
            if other != node and distance2 <= reach2:
                if found < room:
                    net.hoods[node].near[found] = -1 - other if distance2 <= inside2 else other
                    net.hoods[node].near_d2[found] = distance2
                    found += 1
                else:
                    net.run[0].numbers[OVERFLOW] += 1
    net.macs[node].near_count = found
