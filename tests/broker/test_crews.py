"""Members of a group by what they want: whoever is chosen is the one that looking at each would find."""

from __future__ import annotations

import random

from sojourn.broker.crews import AskedConditions, Crew
from sojourn.interest import Filter
from sojourn.mqtt.content import parse_filter
from sojourn.mqtt.message import Message, new_message


def test_a_member_is_chosen_as_if_each_were_looked_at() -> None:
    """Whatever they want, whoever is here, declined or was asked, and however that changed."""
    numbers = random.Random(7)
    conditions = AskedConditions()
    wanted: list[Filter | None] = [None, *map(parse_filter, ("n > 1", "n > 2", "n > 5", "n = 4"))]
    for _ in range(40):
        crew = Crew("t")
        known: dict[str, tuple[Filter | None, bool, bool]] = {}
        for _ in range(60):
            address = f"m{numbers.randrange(30)}"
            choice = numbers.randrange(4)
            if address not in known:
                want, is_willing, is_here = (
                    numbers.choice(wanted),
                    numbers.random() < 0.6,
                    numbers.random() < 0.5,
                )
                known[address] = want, is_willing, is_here
                condition = None if want is None else conditions.take("g", want)
                crew.add(address, condition, is_willing=is_willing, is_here=is_here)
            elif choice == 0:
                del known[address]
                gone = crew.remove(address)
                if gone is not None:
                    conditions.let_go("g", gone)
            elif choice == 1:
                want, is_willing, is_here = known[address]
                known[address] = want, is_willing, not is_here
                crew.turned(address, is_here=not is_here)
            else:
                want, is_willing, is_here = known[address]
                known[address] = want, not is_willing, is_here
                crew.declined(address, is_here=is_here, has_declined=is_willing)
        for number in range(7):
            event = said(number)
            asked = tuple(numbers.sample([f"m{one}" for one in range(30)], numbers.randrange(4)))
            found = crew.candidates(conditions.about(event), asked)
            expected = by_hand(known, number, asked)
            chosen = [] if found is None else [found.at(place) for place in range(found.count)]
            assert chosen == expected
        for address in known:
            gone = crew.remove(address)
            if gone is not None:
                conditions.let_go("g", gone)
        assert (crew.size, conditions.size, len(crew)) == (0, 0, 0)


def said(number: int) -> Message:
    """An event that says a number."""
    return new_message("t", b'{"n": %d}' % number, qos=1, now=0.0, publisher="")


def by_hand(
    known: dict[str, tuple[Filter | None, bool, bool]], number: int, asked: tuple[str, ...]
) -> list[str]:
    """Those that come first, in order."""
    fits = {None: True, "n > 1": number > 1, "n > 2": number > 2, "n > 5": number > 5, "n = 4": number == 4}
    fitting = sorted(
        address
        for address, (want, _, _) in known.items()
        if address not in asked and fits[None if want is None else str(want)]
    )
    willing = [address for address in fitting if known[address][1]] or fitting
    return [address for address in willing if known[address][2]] or willing
