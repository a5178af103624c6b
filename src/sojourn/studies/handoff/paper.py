"""The numbers that paper 001 prints, as data: its Tables 2 to 5, and what its text and figures state."""

SCHEMES = ("durable", "reactive", "proactive")
MOBILITIES = ("RND", "NBR")
POPULATIONS = (10, 100, 200)

Cells = dict[tuple[str, str, int], float]
"""By scheme, mobility and subscribers."""


def _cells(*rows: tuple[int, tuple[float, ...]]) -> Cells:
    columns = [(scheme, mobility) for scheme in SCHEMES for mobility in MOBILITIES]
    return {
        (*column, subscribers): value
        for subscribers, values in rows
        for column, value in zip(columns, values, strict=True)
    }


THROUGHPUT = _cells(
    (10, (86.99, 86.28, 92.39, 90.53, 108.90, 124.72)),
    (100, (589.33, 574.32, 664.39, 663.63, 810.26, 957.32)),
    (200, (806.81, 791.74, 980.77, 953.17, 1172.77, 1420.26)),
)
"""Table 2: messages received a second, all subscribers together."""

LOSS = _cells(
    (10, (4.78, 3.13, 3.65, 5.14, 2.25, 1.26)),
    (100, (5.14, 4.06, 8.92, 7.03, 0.86, 0.72)),
    (200, (4.56, 3.51, 9.62, 9.44, 0.58, 0.51)),
)
"""Table 3: messages lost, in percent."""

DUPLICATES = _cells(
    (10, (11.35, 12.10, 0.80, 1.52, 0.0, 0.0)),
    (100, (12.01, 11.68, 1.70, 0.85, 0.0, 0.0)),
    (200, (17.05, 16.97, 2.13, 1.90, 0.0, 0.0)),
)
"""Table 4: messages received again, in percent."""

TABLES = {"throughput": THROUGHPUT, "loss_percent": LOSS, "duplicates_percent": DUPLICATES}
"""By measure of ours: the paper's table."""

CUBIC = (0.0019, -0.2256, 12.362, 1.7111)
"""Equation 16, highest power first: a broker's messages a second over its expected subscribers."""
CUBIC_R2 = 0.9198
CUBIC_AT_200 = 218.983

RANDOM_OCCUPANCY = {"connected": 0.147679, "handoff": 0.025316, "disconnected": 0.088608}
"""Section 6.4: shares of time, random mobility over six brokers."""
RANDOM_EXPECTED = 29.5358
"""Subscribers expected at a broker, of 200."""

NEIGHBOUR_OCCUPANCY = (0.1099, 0.1648, 0.2198, 0.1099, 0.0549, 0.2198)
"""Table 5: shares of time connected to B1 to B6, neighbouring mobility."""
NEIGHBOUR_ELSEWHERE = 0.1209

HANDOFF_POINTS = {"reactive": (1.2, 0.40), "proactive": (0.35, 0.60), "durable": (0.05, 0.60)}
"""Section 5.2.2: by scheme, seconds and the share of hand-offs that take less."""

TRANSFERRED_PERCENT = (37.0, 42.0)
"""Section 5.2.1: consumed messages that came by reactive state transfer, 200 subscribers."""
