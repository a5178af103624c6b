"""Keys that tokens are checked by: one that cannot do that is refused when it is read, in one sentence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import jwt
import mqtt5
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sojourn.live.brokers.admission import Refusal
from sojourn.live.brokers.server import Server
from sojourn.live.brokers.tokens import Tokens
from sojourn.live.config import ConfigError, JwtConfig, read_config
from tests.live.test_security import SECRET

Algorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]
NO_CLAIMS = b"e30.e30."
SIGNS: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey] = {
    "RS256": rsa.generate_private_key(65_537, 2_048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def public(algorithm: str) -> bytes:
    """The key that belongs to an algorithm, in PEM."""
    return SIGNS[algorithm].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private(algorithm: str, encryption: KeySerializationEncryption) -> bytes:
    """The other half of it."""
    return SIGNS[algorithm].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def written(folder: Path, key: bytes, mode: int = 0o600) -> Path:
    """A file with a key."""
    path = folder / "jwt.key"
    path.write_bytes(key)
    path.chmod(mode)
    return path


BAD: dict[str, tuple[Algorithm, bytes, int, str]] = {
    "empty": ("HS256", b"", 0o600, "has 0 bytes, fewer than 32"),
    "short": ("HS256", b"z" * 31, 0o600, "has 31 bytes, fewer than 32"),
    "readable": ("HS256", SECRET.encode(), 0o644, "chmod 600 .*jwt.key` mends that"),
    "binary": ("HS256", b"\xff\xfe\x00" * 20, 0o600, "is no text"),
    "a public key": ("HS256", public("RS256"), 0o600, "does not fit HS256, which needs a secret"),
    "garbage": ("RS256", SECRET.encode(), 0o644, "does not fit RS256, which needs a public key in PEM"),
    "garbage for curves": ("ES256", SECRET.encode(), 0o644, "does not fit ES256"),
    "garbage for Edwards": ("EdDSA", b"-----BEGIN PUBLIC KEY-----", 0o644, "does not fit EdDSA"),
    "of another algorithm": ("RS256", public("ES256"), 0o644, "does not fit RS256"),
    "private": ("RS256", private("RS256", NoEncryption()), 0o600, "is a private key"),
    "private of a curve": ("ES256", private("ES256", NoEncryption()), 0o600, "is a private key"),
    "encrypted": ("RS256", private("RS256", BestAvailableEncryption(b"x")), 0o600, "does not fit RS256"),
}


@pytest.mark.parametrize("which", BAD)
def test_a_key_that_tells_no_forgeries_is_refused(tmp_path: Path, which: str) -> None:
    """What is wrong, and the way out."""
    algorithm, key, mode, why = BAD[which]
    with pytest.raises(ConfigError, match=why) as refused:
        Tokens(JwtConfig(key=str(written(tmp_path, key, mode)), algorithm=algorithm))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("algorithm", ["HS256", *SIGNS])
def test_keys_that_fit_are_believed(tmp_path: Path, algorithm: Algorithm) -> None:
    """Public ones may be read by everybody."""
    own = algorithm == "HS256"
    path = written(tmp_path, SECRET.encode() if own else public(algorithm), 0o600 if own else 0o644)
    tokens = Tokens(JwtConfig(key=str(path), algorithm=algorithm))
    signing = SECRET if own else private(algorithm, NoEncryption()).decode()
    token = jwt.encode({"sub": "ann", "exp": 1 << 33}, signing, algorithm=algorithm)
    assert not isinstance(tokens.ask("ann", token.encode()), Refusal)
    assert isinstance(tokens.ask("ann", NO_CLAIMS), Refusal)


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "ann\ud800"},
        {"attributes": {"line\udfff": 4}},
        {"attributes": {"line": "\ud800"}},
        {"attributes": {"line": 1 << 70}},
        {"attributes": {"line": float("nan")}},
        {"publish": ["a/\ud800"]},
        {"publish_if": "a = '\ud800'"},
    ],
    ids=str,
)
def test_what_no_attribute_can_be_is_refused_though_it_is_signed(
    tmp_path: Path, claims: dict[str, Any]
) -> None:
    """In a sentence that can be sent, before anybody notes it."""
    tokens = Tokens(JwtConfig(key=str(written(tmp_path, SECRET.encode()))))
    token = jwt.encode({"sub": "ann", "exp": 1 << 33, **claims}, SECRET, algorithm="HS256")
    answer = tokens.ask(None, token.encode())
    assert isinstance(answer, Refusal)
    assert answer.code == mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
    assert answer.text.encode().startswith(b"The token is not accepted: ")


def test_a_reload_with_a_bad_key_leaves_the_old_one_in_force(tmp_path: Path) -> None:
    """It is refused as a whole, and tokens that held go on to hold."""
    path = written(tmp_path, SECRET.encode())
    config = read_config(f'security.jwt.key = "{path}"\n[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n')

    async def scenario() -> int:
        server = Server(config, "B1")
        address = await server.start()
        server.reread = lambda: config
        written(tmp_path, b"z")
        with pytest.raises(ConfigError, match="has 1 bytes"):
            await server.reload()
        token = jwt.encode({"sub": "ann", "exp": 1 << 33}, SECRET, algorithm="HS256")
        reader, writer = await asyncio.open_connection(*address)
        connect = mqtt5.ConnectPacket("phone", username="ann", password=token.encode())
        writer.write(connect.write())
        packet, _ = mqtt5.read(memoryview(await reader.read(1_000)))
        writer.close()
        await server.stop()
        assert isinstance(packet, mqtt5.ConnAckPacket)
        return int(packet.reason_code)

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) == 0
