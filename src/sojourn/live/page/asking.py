"""Questions between brokers about clients, filters and topics: asked for a page, answered by all.

Questions and answers travel as reports do, in volatile frames along the tree of links: what a broker that is
out of reach does not hear it does not answer, and whoever asked says which brokers are missing. Reports are
maps and these are arrays, so a broker that knows nothing of questions passes them on and ignores them.

Everything has a limit: questions under way here, questions that wait to be answered, how long an answer is
waited for, how large it may be. Answers are made in steps, between which the broker serves its clients.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from sojourn.broker.answering import answer
from sojourn.broker.facts import StatusMade
from sojourn.broker.questions import (
    TRAIL_MAX,
    AskClient,
    AskClients,
    AskFilters,
    AskTopics,
    AskWho,
    ClientFound,
    ClientsFound,
    FiltersFound,
    Found,
    Question,
    TopicsFound,
    WhoFound,
)
from sojourn.errors import SojournError
from sojourn.live.brokers.node import Node
from sojourn.live.page.status import Move
from sojourn.live.seldom import Seldom

ASKING_MAX = 16
"""Questions under way that were asked here."""
ANSWERING_MAX = 32
"""Questions that wait for an answer of this broker; further ones are not answered."""
ANSWER_S = 2.0
"""How long other brokers are waited for."""
TALK_BYTES_MAX = 512 << 10
_ARRAYS = (*range(0x90, 0xA0), 0xDC)
"""How an array of a few elements begins in MessagePack."""

_seldom = Seldom(logging.getLogger("sojourn.asking"))


class BusyError(SojournError):
    """Too many questions are under way."""


class Said(NamedTuple):
    """What one broker answered."""

    broker: str
    found: Found
    trail: list[Move]


class Asked(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """A question to other brokers."""

    number: int
    brokers: list[str]
    """Who is to answer; all if it is empty."""
    question: Question


class Answered(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    """The answer of one broker."""

    asker: str
    number: int
    kind: int
    """The place of the answer's kind in `_KINDS`."""
    found: msgspec.Raw
    trail: list[Move]


_KINDS: tuple[type, ...] = Found.__args__
_FITTING: dict[type, type] = {
    AskClients: ClientsFound,
    AskClient: ClientFound,
    AskFilters: FiltersFound,
    AskTopics: TopicsFound,
    AskWho: WhoFound,
}
"""By kind of question: the kind of its answer."""
_READ: list[Callable[..., Found]] = [msgspec.msgpack.Decoder(kind).decode for kind in _KINDS]


class _Pending:
    """A question that brokers have not all answered."""

    def __init__(self, waits_for: set[str], question: Question) -> None:
        self.waits_for = waits_for
        self._fitting = _FITTING[type(question)]
        self.said: list[Said] = []
        self.done = asyncio.Event()

    def take(self, said: Said) -> None:
        """Take the answer of a broker, once, if it answers what was asked."""
        if said.broker in self.waits_for and isinstance(said.found, self._fitting):
            self.waits_for.discard(said.broker)
            self.said.append(said)
            if not self.waits_for:
                self.done.set()


def is_talk(body: bytes) -> bool:
    """Whether bytes of another broker are a question or an answer, and no report."""
    return bool(body) and body[0] in _ARRAYS


class Enquirer:
    """Asks for one broker, and answers for it."""

    def __init__(self, node: Node, trail: Callable[[str], list[Move]]) -> None:
        self._node = node
        self._trail = trail
        self._name = node.place.name
        self._number = secrets.randbits(48)
        self._pending: dict[int, _Pending] = {}
        self._questions: deque[tuple[str, Asked]] = deque()
        self._working: asyncio.Task[None] | None = None
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Asked | Answered).decode

    # Asking ----------------------------------------------------------------------------------------------

    async def ask(
        self, question: Question, brokers: set[str], only: list[str] | None = None
    ) -> tuple[list[Said], list[str]]:
        """Ask brokers that are heard of; return what they said, and who of them did not answer in time."""
        if len(self._pending) >= ASKING_MAX:
            raise BusyError(f"{ASKING_MAX} questions are under way; ask again in a moment.")
        self._number += 1
        number = self._number
        asked = Asked(number, only or [], question)
        pending = _Pending(set(brokers if only is None else only), question)
        self._pending[number] = pending
        try:
            if self._name in pending.waits_for:
                self._take_question(self._name, asked)
            if pending.waits_for - {self._name} and self._node.links is not None:
                self._node.tell(StatusMade(self._encode(asked)))
            try:
                async with asyncio.timeout(ANSWER_S):
                    await pending.done.wait()
            except TimeoutError:
                pass  # who is missing is named
        finally:
            del self._pending[number]
        return sorted(pending.said, key=lambda said: said.broker), sorted(pending.waits_for)

    # Answering -------------------------------------------------------------------------------------------

    def heard(self, broker: str, body: bytes) -> None:
        """Take a question or an answer of another broker, unless it is neither."""
        if len(body) > TALK_BYTES_MAX:
            return
        try:
            talk = self._decode(body)
            if isinstance(talk, Asked):
                self._take_question(broker, talk)
            elif talk.asker == self._name and 0 <= talk.kind < len(_READ):
                pending = self._pending.get(talk.number)
                if pending is not None:
                    pending.take(Said(broker, _READ[talk.kind](talk.found), talk.trail))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _seldom.warning(("talk", broker), "question", broker=broker, error=str(error))

    def stop(self) -> None:
        """Answer no more."""
        self._questions.clear()
        if self._working is not None:
            self._working.cancel()

    def _take_question(self, asker: str, asked: Asked) -> None:
        if asked.brokers and self._name not in asked.brokers:
            return
        if len(self._questions) >= ANSWERING_MAX:
            return
        self._questions.append((asker, asked))
        if self._working is None or self._working.done():
            self._working = asyncio.ensure_future(self._answer_all())

    async def _answer_all(self) -> None:
        while self._questions:
            asker, asked = self._questions.popleft()
            try:
                said = await self._look(asked.question)
            except SojournError as error:  # a broker of another release asks what this one cannot read
                _seldom.warning(("ask", asker), "question", broker=asker, error=str(error))
                continue
            if asker == self._name:
                pending = self._pending.get(asked.number)
                if pending is not None:
                    pending.take(said)
                continue
            kind, found = _KINDS.index(type(said.found)), msgspec.Raw(self._encode(said.found))
            body = self._encode(Answered(asker, asked.number, kind, found, said.trail))
            if len(body) <= TALK_BYTES_MAX:
                self._node.tell(StatusMade(body))

    async def _look(self, question: Question) -> Said:
        """Look for an answer, and let others have their turn between two steps."""
        node = self._node
        steps = answer(question, node.core, node.network, node.now())
        while True:
            try:
                next(steps)
            except StopIteration as end:
                trail = self._trail(question.client) if isinstance(question, AskClient) else []
                return Said(self._name, end.value, trail[-TRAIL_MAX:])
            await asyncio.sleep(0)
