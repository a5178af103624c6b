"""How long a JSON payload takes to read, told from its bytes before anything of it is decoded.

Whoever reads a payload does so at once, and others wait. What takes long is not its length but what it has
many of: names, objects and lists above all, then elements of lists, and most of all some numbers. One near
the end of what a double can hold (`9e307`), or with very many digits, takes as long as hundreds of others,
a large one with more digits than a word holds as long as a hundred, and one in the middle between two doubles
(`1e23`) as long as ten.
All are counted as they look, those in texts included: whoever counts must be quick.
"""

from __future__ import annotations

STRUCTURE_MAX = 50_000
"""Colons and opening brackets of a payload up to which it is read; what else there is counts in these."""
COMMAS, EXPONENTS = 4, 4
"""So many commas, and numbers with an exponent, count for one."""
LONG_NUMBER = 25
"""What a number with an exponent of three digits counts for, and so many digits in a row as follow."""
DIGITS = b"0" * 40
LONG_MANTISSA = 8
"""What a number with an exponent counts for that has this many digits or more before it."""
MANTISSA = b"0" * 20 + b"e0"
SHORTEST_LONG = len("9e307,")
UNWEIGHED_BYTES = STRUCTURE_MAX // LONG_NUMBER * SHORTEST_LONG
"""No payload of so many bytes can be too much."""

_AS_NUMBERS = bytes(
    ord("0") if chr(byte).isdecimal() and byte < 128 else ord("e") if chr(byte) in "eE" else byte
    for byte in range(256)
)
"""Every digit as 0, both letters of exponents as one."""
_IN_NUMBERS = b"+-."


def is_heavy(payload: bytes) -> bool:
    """Whether reading a payload would take long."""
    if len(payload) <= UNWEIGHED_BYTES:
        return False
    structure = sum(map(payload.count, (b":", b"{", b"["))) + payload.count(b",") // COMMAS
    if structure > STRUCTURE_MAX:
        return True
    numbers = payload.translate(_AS_NUMBERS, _IN_NUMBERS)
    long = numbers.count(b"0e000")
    structure += numbers.count(b"0e0") // EXPONENTS + LONG_MANTISSA * numbers.count(MANTISSA)
    return structure + LONG_NUMBER * (long + numbers.count(DIGITS)) > STRUCTURE_MAX
