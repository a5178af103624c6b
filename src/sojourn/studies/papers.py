"""The papers whose claims are measured: who wrote them, what they are called, and when they appeared.

The data stand in the ledger (`claims.toml`, the table `papers`). Only one paper's title is printed in the
text that we work from; the others' are given as they are known, and marked so.
"""

import tomllib
from importlib import resources

import msgspec

from sojourn.studies.claims import UnknownStudyError


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """One paper."""

    number: str
    """Its name in this project, as in "paper 001"."""
    about: str
    """What it is about, in our words."""
    authors: str = ""
    title: str = ""
    published: str = ""
    """Where and when."""
    as_known: bool = False
    """Whether the title is not printed in the text that we work from."""

    @property
    def cited(self) -> str:
        """The paper in one line."""
        if not self.title:
            return f"Paper {self.number}, {self.about} (no title or author in the text that we work from)"
        mark = " (title as known)" if self.as_known else ""
        return f"{self.authors}, “{self.title}”, {self.published}{mark}"


class _Ledger(msgspec.Struct, frozen=True):
    studies: dict[str, str]
    papers: dict[str, Paper]


def paper_of(study: str) -> Paper:
    """The paper that a study measures."""
    text = resources.files("sojourn.studies").joinpath("claims.toml").read_text(encoding="utf-8")
    ledger = msgspec.convert(tomllib.loads(text), _Ledger)
    for letter, name in ledger.studies.items():
        if name == study:
            return ledger.papers[letter]
    raise UnknownStudyError(f"study may be {', '.join(ledger.studies.values())}, not {study!r}.")
