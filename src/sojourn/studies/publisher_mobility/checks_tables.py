"""The claims on tables 1 and 2, judged by the interest package itself: no simulation is involved."""

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.algebra import covers
from sojourn.interest.filters import Filter
from sojourn.studies.cited import WORKED_OUT, stated
from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.means import Table

_COMPUTER = "product = 'computer' AND "

TABLE_1 = (
    # first subscription, second subscription, first covers second, second covers first
    ("brand = 'IBM' AND price <= 1600", "brand = 'IBM' AND price <= 1500", True, False),
    ("brand = 'IBM' AND price <= 1600", "price <= 1600", False, True),
    ("brand = 'IBM' AND price <= 1600", "brand = 'Dell' AND price <= 1500", False, False),
)

TABLE_2 = (
    # subscription, advertisement, whether they intersect
    ("brand = 'IBM' AND price <= 1600", "brand = 'IBM' AND price <= 1500", True),
    ("price <= 1600", "brand = 'IBM' AND price <= 1600", True),
    ("brand = 'IBM' AND price <= 1600", "brand = 'Dell' AND price <= 1500", False),
)


def table1(claim: Claim, _table: Table) -> Verdict:
    """Covering, both ways round, for the paper's three pairs."""
    measured = {}
    right = 0
    for row, (one_text, other_text, forth, back) in enumerate(TABLE_1, start=1):
        one, other = Filter.parse(_COMPUTER + one_text), Filter.parse(_COMPUTER + other_text)
        measured[f"row {row}: s1 covers s2"] = covers(one, other)
        measured[f"row {row}: s2 covers s1"] = covers(other, one)
        right += (covers(one, other), covers(other, one)) == (forth, back)
    return judge(
        claim,
        holds=right == len(TABLE_1),
        measured={name: stated(value, WORKED_OUT) for name, value in measured.items()},
        evidence=f"{right} of {len(TABLE_1)} rows as in the paper, both ways round.",
    )


def table2(claim: Claim, _table: Table) -> Verdict:
    """Intersection for the paper's three pairs."""
    measured = {}
    right = 0
    for row, (subscription, advertisement, meets) in enumerate(TABLE_2, start=1):
        found = Advertisement.parse(_COMPUTER + advertisement).intersects(
            Filter.parse(_COMPUTER + subscription)
        )
        measured[f"row {row}: a intersects s"] = found
        right += found == meets
    return judge(
        claim,
        holds=right == len(TABLE_2),
        measured={name: stated(value, WORKED_OUT) for name, value in measured.items()},
        evidence=f"{right} of {len(TABLE_2)} rows as in the paper.",
    )
