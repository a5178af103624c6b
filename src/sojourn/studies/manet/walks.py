"""How far a packet may walk: our reading of section 3.1, and ns-2's limit, by which claims are judged again.

The paper ends a walk round a void only where it began, so the study lets packets take as many hops as a walk
round sixty nodes can have. ns-2 itself drops a packet after 32. Which of the two the authors' runs had is not
said; so each claim that the limit touches is judged by the first and says what the second would come to.
"""

from sojourn.sim.manet_scenario import SCHEMES, Manet
from sojourn.studies.manet.grid import SHORT_WALKS
from sojourn.studies.manet.parameters import SHORT_TTL, SIX
from sojourn.studies.manet.table import Points, Table


def named(scenario: str, scheme: str, *, short: bool) -> str:
    """The experiment that has a scheme's runs; over AODV nothing walks, so there is one alone."""
    return scenario + SHORT_WALKS if short and SCHEMES[scheme].geographic else scenario


def lines(table: Table, scenario: str, measure: str, *, short: bool = False) -> dict[str, Points]:
    """A measure over speed, of each of the six schemes."""
    return {scheme: table.line(named(scenario, scheme, short=short), scheme, measure) for scheme in SIX}


def otherwise(broken: list[str], short_broken: list[str]) -> str:
    """A sentence on what the verdict is under the shorter limit, and what breaks it there."""
    verdict = "differs" if short_broken else "holds"
    same = "it still" if bool(broken) == bool(short_broken) else "the verdict is another: it"
    why = f" ({'; '.join(short_broken[:3])})" if short_broken else ""
    more = f" and {len(short_broken) - 3} more" if len(short_broken) > 3 else ""
    return f" Packets may take {Manet().ttl} hops here; with ns-2's {SHORT_TTL} {same} {verdict}{why}{more}."
