"""A link that stays down for a certificate says so, and not all the time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from sojourn.live.config import Address, TlsConfig
from sojourn.live.links import peers
from sojourn.live.links.calling import called
from sojourn.live.links.peers import PeerLinks
from sojourn.live.links.proofs import Proof
from sojourn.live.links.tls import for_callers, for_calling
from tests.live.test_peers import until
from tests.live.test_security import Authority

RUNS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
SIDES = {"who calls": "B1", "who is called": "B2"}
SAID = {
    "who calls": "B1 has no link to B2",
    "who is called": "B2 ends a connection to a stranger at 127.0.0.1",
}


def proofs(folder: Path, accepted: str) -> dict[str, Proof]:
    """What two brokers prove themselves by, of which each has its own authority, and one accepts both."""
    found = {}
    authorities = {name: Authority(folder, f"authority of {name}") for name in ("B1", "B2")}
    pems = {name: authority.path for name, authority in authorities.items()}
    (folder / "both.pem").write_text("".join(pem.read_text() for pem in pems.values()))
    for name, authority in authorities.items():
        authority.issue(name)
        files = TlsConfig(
            certificate=str(folder / f"{name}.pem"),
            key=str(folder / f"{name}.key"),
            authority=str(pems[name] if name == accepted else folder / "both.pem"),
        )
        found[name] = Proof("the network", None, for_callers(files, name), for_calling(files, name))
    return found


class Calls:
    """Counts calls of neighbours."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, *given: Any) -> Any:
        """Call, as without it."""
        self.count += 1
        return await called(*given)


def lines(caplog: pytest.LogCaptureFixture, broker: str) -> list[str]:
    """What a broker warned of."""
    said = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    return [text for text in said if text.startswith(broker)]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("picky", SIDES)
def test_who_does_not_accept_a_certificate_says_so(
    tmp_path: Path, run: str, picky: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, however often it is called: what does not mend itself should not have to be looked for."""
    calls = Calls()
    monkeypatch.setattr(peers, "called", calls)
    proof = proofs(tmp_path, SIDES[picky])

    async def scenario() -> None:
        refused: list[tuple[str, str]] = []
        two = PeerLinks("B2", ("B1",), lambda _: None, proof["B2"], calls={})
        two.on_refusal = lambda who, why: refused.append((who, why))
        there = await two.start(Address("127.0.0.1", 0))
        assert there is not None
        one = PeerLinks("B1", ("B2",), lambda _: None, proof["B1"], calls={"B2": there})
        await one.start(None)
        await until(lambda: calls.count > 3 and bool(lines(caplog, SIDES[picky])))
        for links in (one, two):
            await links.stop()
        assert {who for who, _ in refused} == (
            {"a stranger at 127.0.0.1"} if picky == "who is called" else set()
        )
        assert two.refusals == len(refused)

    RUNS[run](asyncio.wait_for(scenario(), 60))
    (line,) = lines(caplog, SIDES[picky])
    assert line.startswith(SAID[picky] + ": its certificate was not accepted (")
