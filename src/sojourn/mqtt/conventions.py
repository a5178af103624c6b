"""What Sojourn says through MQTT 5's user properties, in both directions.

Everything here is optional. A client that knows nothing of Sojourn sends none of these properties and is sent
none: what it publishes arrives elsewhere with its user properties unaltered, as the standard demands.

On CONNECT a client may send
- `sojourn-numbered` = `1`: it wants `sojourn-source` and `sojourn-sequence` on every event it is sent, so
  that it can tell a repetition from an event that only looks the same;
- `sojourn-previous`: the name of the broker it was connected to last, which saves the brokers a search;
- `sojourn-marks`: a JSON object of the last sequence it has seen by source: older events are not sent again;
- `sojourn-advertise`: an advertisement (may be repeated); without one a client may publish anything;
- `sojourn-quench` = `1`: it wants to be told what anybody wants, so that it can keep back what nobody does;
- `sojourn-attribute-NAME`: an attribute of the subscriber, for the access policies of events, where the
  configuration lets clients state their own.
On CONNACK the broker answers with `sojourn-broker`, its name; with `sojourn-dropped`, how many events of QoS
1 and 2 found no room in the queue of the client's session since that was last told, if any did; and with
`sojourn-quench` = `1` if it will quench the client. It then sends the combined interest of all subscriptions
on the topic `$sojourn/quench` at QoS 0: first the whole (`base` is -1), then differences, as JSON with
`version`, `base` (the version it starts from), `dropped` (numbers of alternatives) and `added` (pairs of a
number and a filter). What matches no alternative is wanted by nobody at present; retained events are for
later subscribers and are sent all the same.

On PUBLISH a client may number its events itself with `sojourn-number` = `CLIENT:NUMBER`, growing: one that it
has to send again, perhaps to another broker, is then known as the same. It is passed on like any property,
unless it is the number of another client: subscribers would take that one's own events for old.
Who passes on what somebody else published says by `sojourn-origin` = `PUBLISHER:NUMBER` what it is known by.

An event of a shared subscription that another member may have had already, and ended without acknowledging
it, comes with `sojourn-again` = `1`.

On SUBSCRIBE `filter` is an expression over attributes which an event must satisfy beside the topic filter;
it holds for every topic filter of that packet, and so do these, on what waits while the client is away
(`queue_policies.py`): `sojourn-keep` = `last:KEY` keeps the newest event of each value of an attribute,
`highest:ATTRIBUTE` or `lowest:ATTRIBUTE` the one with the extreme; `sojourn-expiry` = SECONDS keeps nothing
older; `sojourn-budget` = BYTES keeps the newest events within so many.

On PUBLISH `policy` is an expression over the subscriber's attributes.
"""

import math
from collections.abc import Iterable
from typing import Final

from sojourn.interest.values import Scalar

NUMBERED: Final = "sojourn-numbered"
PREVIOUS: Final = "sojourn-previous"
MARKS: Final = "sojourn-marks"
ADVERTISE: Final = "sojourn-advertise"
ADVERTISE_TOPIC: Final = "$sojourn/advertise"
"""Publishing an advertisement's text here makes it at any time after CONNECT; nobody receives it."""
QUENCH: Final = "sojourn-quench"
QUENCH_TOPIC: Final = "$sojourn/quench"
ATTRIBUTE_PREFIX: Final = "sojourn-attribute-"
BROKER: Final = "sojourn-broker"
DROPPED: Final = "sojourn-dropped"
SOURCE: Final = "sojourn-source"
SEQUENCE: Final = "sojourn-sequence"
NUMBER: Final = "sojourn-number"
ORIGIN: Final = "sojourn-origin"
AGAIN: Final = "sojourn-again"
KEEP: Final = "sojourn-keep"
EXPIRY: Final = "sojourn-expiry"
BUDGET: Final = "sojourn-budget"
FILTER: Final = "filter"
POLICY: Final = "policy"

MARKS_MAX: Final = 1_000
"""Sources in `sojourn-marks`; a client that heard more names those it heard last."""

NUMBER_CHARACTERS_MAX: Final = 40
"""A longer text is no number, however many digits it has: a number as others write it has fewer."""

NUMBER_DIGITS_MAX: Final = 18
"""Digits of the numbers of events, which are dates in microseconds or counted."""

QUOTE: Final = '"'
"""What a user property begins and ends with that is text, whatever it looks like."""


def number_of(text: str) -> int | None:
    """The number of an event, as a broker or a publisher wrote it; None for anything else."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS_MAX
    return int(text) if is_number else None


def without_numbers_of_others(said: Iterable[tuple[str, str]], client_id: str) -> tuple[tuple[str, str], ...]:
    """What a client says of an event, but for numbers that are not its own to give."""
    return tuple([pair for pair in said if pair[0] != NUMBER or pair[1].rpartition(":")[0] == client_id])


def value_of(text: str) -> Scalar:
    """The value of a user property as an attribute: a number or boolean where it is written as one.

    So `7` is a number, which `road = '7'` does not match; `"7"` in double quotes is the text. What is no
    finite number (`nan`, `inf`, `1e999`) is text too, and so is what is too long for one.
    """
    if text[:1] == QUOTE and len(text) > 1 and text[-1] == QUOTE:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if text and text[0] in "-0123456789" and len(text) <= NUMBER_CHARACTERS_MAX and "_" not in text:
        try:
            return int(text)
        except ValueError:
            pass
        try:
            number = float(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    return text


def text_of(value: Scalar) -> str:
    """An attribute as the text of a user property, which `value_of` reads back.

    A text that would be read as something else is put in double quotes.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if value_of(value) == value else f"{QUOTE}{value}{QUOTE}"
    return str(value)
