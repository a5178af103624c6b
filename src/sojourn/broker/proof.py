"""How two neighbours prove to each other who they are, before either says anything else.

Both know the secret of their network. On a new connection

    caller:  its name, whom it calls, the network, a nonce
    called:  a nonce of its own, and a proof
    caller:  a proof

A proof is an HMAC-SHA256 under the secret over who proves it (the caller or the one called), the network,
both names and both nonces. So a proof that was overheard is of no use on another connection, one's own is of
none when it is sent back, and that of one pair or network of none for another. The one called proves itself
first: a process that sits on a neighbour's port learns nothing that it could use.

    proving = Proving.of_caller(secret, network, "B1", "B2", nonce)
    proving.outgoing                    # what to write first
    proving.arrived(data)               # what to write next; raises ProofError
    proving.peer, proving.is_done, proving.rest     # who it is, and what came after the proof

This proves who is at the other end when a connection begins. It encrypts nothing: for links that others can
listen to there is TLS. Nonces are the driver's; nothing here draws or waits.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Literal

import msgspec

from sojourn.errors import SojournError

SECRET_BYTES_MIN = 32
NONCE_BYTES = 32
PROOF_BYTES = 32
WORDS_BYTES_MAX = 4_096
"""Of anything that is said before somebody has proved who it is."""
QUOTED_MAX = 100
"""Characters that are quoted of a name which the other side gives."""

_LENGTH = struct.Struct(">4sI")
_MAGIC = b"SJP1"
"""What everything that is said here begins with."""

Role = Literal["caller", "called"]


class ProofError(SojournError):
    """The other side did not prove who it is; its connection is to be closed.

        raise ProofError("it calls {}, this is {}.", call.called, "B2")

    What the other side says is given apart from the sentence and quoted up to a length. So the sentence alone
    is the `kind` of refusal, which a stranger cannot choose: there are as many kinds as sentences.
    """

    def __init__(self, kind: str, *words: str | int | None) -> None:
        super().__init__(kind.format(*map(_quoted, words)))
        self.kind = kind


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="call"):
    """What a caller says first."""

    network: str
    caller: str
    called: str
    nonce: bytes


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="answer"):
    """What the one called says."""

    nonce: bytes
    proof: bytes


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="confirmation"):
    """What the caller says last."""

    proof: bytes


_decode = msgspec.msgpack.Decoder(Call | Answer | Confirmation).decode
_encode = msgspec.msgpack.Encoder().encode


def proof_of(secret: bytes, role: Role, call: Call, nonce: bytes) -> bytes:
    """Return the proof of one side for one connection."""
    # An array, so that no two different lists of parts are the same bytes.
    parts = ["sojourn link", role, call.network, call.caller, call.called, call.nonce, nonce]
    return hmac.digest(secret, _encode(parts), hashlib.sha256)


class Proving:
    """One side of one connection, until both have proved who they are."""

    def __init__(
        self,
        secret: bytes,
        network: str,
        broker: str,
        peers: frozenset[str],
        nonce: bytes,
        port: str = "for neighbours (`peers`)",
    ) -> None:
        """Wait at a port to be called by one of `peers`; a caller is made by `of_caller`."""
        assert len(nonce) == NONCE_BYTES, "nonces have one length"
        self._secret, self._network, self._broker, self._peers = secret, network, broker, peers
        self._nonce, self._port = nonce, port
        self._call: Call | None = None
        self._buffer = b""
        self._calls = False
        self.outgoing = b""
        """What a caller is to write first."""
        self.peer: str | None = None
        """Who is at the other end, once that is proved."""

    @classmethod
    def of_caller(cls, secret: bytes, network: str, broker: str, peer: str, nonce: bytes) -> Proving:
        """Return the side of a broker that calls a neighbour."""
        made = cls(secret, network, broker, frozenset({peer}), nonce)
        made._calls = True
        made._call = Call(network, broker, peer, nonce)
        made.outgoing = _framed(made._call)
        return made

    @property
    def is_done(self) -> bool:
        """Whether the other side has proved who it is."""
        return self.peer is not None

    @property
    def rest(self) -> bytes:
        """What came after the proof."""
        assert self.is_done, "nothing is read of who has not proved anything"
        return self._buffer

    def arrived(self, data: bytes) -> bytes:
        """Take what came; return what to write."""
        assert not self.is_done, "what comes after the proof is not for this"
        self._buffer += data
        written = b""
        while not self.is_done and (words := self._next()) is not None:
            written += self._heard(words)
        return written

    def _next(self) -> Call | Answer | Confirmation | None:
        """Return the next thing that was said, once all of it is there."""
        if self._buffer[:4] != _MAGIC[: len(self._buffer)]:
            raise ProofError(_strange(self._buffer, self._port))
        if len(self._buffer) < _LENGTH.size:
            return None
        _, length = _LENGTH.unpack_from(self._buffer)
        if length > WORDS_BYTES_MAX:
            raise ProofError("it sends {} bytes before it has proved who it is.", length)
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        body, self._buffer = self._buffer[_LENGTH.size : end], self._buffer[end:]
        try:
            words: Call | Answer | Confirmation = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ProofError("what it says to prove who it is cannot be read.") from None
        return words

    def _heard(self, words: Call | Answer | Confirmation) -> bytes:
        if isinstance(words, Call) and not self._calls and self._call is None:
            return self._called(words)
        if isinstance(words, Answer) and self._calls and self._call is not None:
            return self._answered(self._call, words)
        if isinstance(words, Confirmation) and not self._calls and self._call is not None:
            self._check("caller", self._call, self._nonce, words.proof)
            self.peer = self._call.caller
            return b""
        raise ProofError("it does not keep to the order of a proof.")

    def _called(self, call: Call) -> bytes:
        """Somebody says who it is: prove who this is, and wait for its proof."""
        if call.network != self._network:
            raise ProofError("it is of the network {}, this is {}.", call.network, self._network)
        if call.called != self._broker:
            raise ProofError("it calls {}, this is {}.", call.called, self._broker)
        if call.caller not in self._peers:
            raise ProofError("it says it is {}, which does not call this broker.", call.caller)
        if len(call.nonce) != NONCE_BYTES:
            raise ProofError("its nonce has another length.")
        self._call = call
        return _framed(Answer(self._nonce, proof_of(self._secret, "called", call, self._nonce)))

    def _answered(self, call: Call, answer: Answer) -> bytes:
        if len(answer.nonce) != NONCE_BYTES:
            raise ProofError("its nonce has another length.")
        self._check("called", call, answer.nonce, answer.proof)
        self.peer = call.called
        return _framed(Confirmation(proof_of(self._secret, "caller", call, answer.nonce)))

    def _check(self, role: Role, call: Call, nonce: bytes, proof: bytes) -> None:
        if not hmac.compare_digest(proof_of(self._secret, role, call, nonce), proof):
            who = call.called if role == "called" else call.caller
            raise ProofError("it does not know the secret of the network, and so is not {}.", who)


def _quoted(word: str | int | None) -> str:
    """Return a word of the other side as it is shown: cut, and escaped where it is not printable."""
    text = repr(word)
    return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}…"


def _framed(words: Call | Answer | Confirmation) -> bytes:
    body = _encode(words)
    return _LENGTH.pack(_MAGIC, len(body)) + body


def _strange(first: bytes, port: str) -> str:
    """Say what somebody speaks who does not begin with a proof, if that can be told."""
    if first[:1] == b"\x10":
        return f"it speaks MQTT, and this port is {port}; clients come to that of `listen`."
    if first[:2] == b"\x16\x03":
        return "it begins with TLS, and links have none here; give both sides the same [tls], or neither."
    if first[:4] == b"GET ":
        return f"it speaks HTTP, and this port is {port}."
    return (
        "it does not begin with a proof of who it is; run the same release on both sides, with the "
        "same `secret` in [network]."
    )
