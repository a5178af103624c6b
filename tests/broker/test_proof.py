"""Neighbours prove who they are: no proof works twice, backwards, for others or without the secret."""

from __future__ import annotations

import msgspec
import pytest

from sojourn.broker.proof import (
    NONCE_BYTES,
    QUOTED_MAX,
    WORDS_BYTES_MAX,
    Answer,
    Call,
    Confirmation,
    ProofError,
    Proving,
    _framed,
    proof_of,
)

SECRET, OTHER = b"the secret of this network, 32 bytes", b"the secret of another one, 32 bytes."


def nonce(number: int) -> bytes:
    """A nonce that is not drawn."""
    return number.to_bytes(NONCE_BYTES)


def caller(
    secret: bytes = SECRET, network: str = "N", name: str = "B1", to: str = "B2", at: int = 1
) -> Proving:
    """The side of B1, which calls B2."""
    return Proving.of_caller(secret, network, name, to, nonce(at))


def called(secret: bytes = SECRET, network: str = "N", name: str = "B2", at: int = 2) -> Proving:
    """The side of B2, which B1 may call."""
    return Proving(secret, network, name, frozenset({"B1"}), nonce(at))


def meet(one: Proving, two: Proving) -> None:
    """Let two sides talk."""
    two.arrived(one.arrived(two.arrived(one.outgoing)))


def test_both_prove_who_they_are() -> None:
    """In however many pieces it comes; what follows the proof is kept for who reads next."""
    one, two = caller(), called()
    for byte in one.outgoing:
        answer = two.arrived(bytes((byte,)))
    confirmation = b"".join(one.arrived(bytes((byte,))) for byte in answer)
    assert one.peer == "B2"
    assert not two.is_done
    two.arrived(confirmation + b"hello")
    assert two.peer == "B1"
    assert two.rest == b"hello"


@pytest.mark.parametrize(
    ("one", "two", "why"),
    [
        (caller(OTHER), called(), "does not know the secret"),
        (caller(), called(OTHER), "does not know the secret"),
        (caller(network="M"), called(), "of the network 'M'"),
        (caller(name="B9"), called(), "which does not call this broker"),
        (caller(to="B3"), called(), "it calls 'B3'"),
    ],
)
def test_without_the_secret_or_with_another_name_nobody_is_a_neighbour(
    one: Proving, two: Proving, why: str
) -> None:
    """Whichever side it is."""
    with pytest.raises(ProofError, match=why):
        meet(one, two)
    assert not two.is_done


def test_little_is_quoted_of_what_a_stranger_says_and_none_of_it_is_the_kind() -> None:
    """Whatever it names itself, and however its characters have to be escaped."""
    refused = []
    for network in ("a", "b" * 3_900, "\x01" * 3_900):
        with pytest.raises(ProofError) as error:
            meet(caller(network=network), called())
        refused.append(error.value)
    assert len({error.kind for error in refused}) == 1
    assert max(len(str(error)) for error in refused) < 2 * QUOTED_MAX


def test_a_proof_that_was_overheard_is_worthless() -> None:
    """All that was said on one connection, said again on another, in either direction."""
    one, two = caller(), called()
    answer = two.arrived(one.outgoing)
    confirmation = one.arrived(answer)
    again = called(at=3)
    again.arrived(one.outgoing)
    with pytest.raises(ProofError, match="secret"):  # a caller that replays
        again.arrived(confirmation)
    with pytest.raises(ProofError, match="secret"):  # a false neighbour that replays
        caller(at=4).arrived(answer)


def test_a_proof_that_is_sent_back_is_worthless() -> None:
    """Neither the words of a caller nor the proof of the one called are of use to their own sender."""
    one = caller()
    with pytest.raises(ProofError, match="order"):
        one.arrived(one.outgoing)
    two = called()
    answer = two.arrived(caller().outgoing)
    with pytest.raises(ProofError, match="order"):
        two.arrived(answer)
    # The proof of the one called, dressed up as that of the caller.
    third = called()
    said = third.arrived(caller().outgoing)
    mirrored = msgspec.msgpack.decode(said[8:], type=Answer).proof
    with pytest.raises(ProofError, match="secret"):
        third.arrived(_framed(Confirmation(mirrored)))
    assert proof_of(SECRET, "called", Call("N", "B1", "B2", nonce(1)), nonce(2)) == mirrored


def test_what_two_called_sides_say_does_not_prove_a_caller() -> None:
    """Somebody between two brokers that both wait to be called cannot play one against the other."""
    two, three = called(), Proving(SECRET, "N", "B3", frozenset({"B1"}), nonce(5))
    two.arrived(caller().outgoing)
    with pytest.raises(ProofError):
        three.arrived(caller().outgoing)  # it is for B2
    assert not two.is_done


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x10\x01",
        b"SJP1\xff\xff\xff\xff",
        b"SJP1" + (WORDS_BYTES_MAX + 1).to_bytes(4),
        b"SJP1\x00\x00\x00\x01\xc1",
    ],
)
def test_noise_is_refused_at_once(data: bytes) -> None:
    """Before much of it is kept."""
    with pytest.raises(ProofError):
        called().arrived(data)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"\x10\x0e\x00\x04MQTT\x05", "speaks MQTT, and this port is for neighbours"),
        (b"\x16\x03\x01\x02\x00\x01", "begins with TLS"),
        (b"GET /metrics HTTP/1.1\r\n", "speaks HTTP"),
        (b"hello", "does not begin with a proof"),
    ],
)
def test_who_comes_to_the_wrong_door_is_told_from_neighbours(first: bytes, why: str) -> None:
    """The log says what somebody speaks, where that can be told."""
    with pytest.raises(ProofError, match=why):
        called().arrived(first)
