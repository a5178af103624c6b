"""By what a broker knows its neighbours: the secret of the network, certificates, or both."""

from __future__ import annotations

from sojourn.live.config import Config
from sojourn.live.links.peers import PeerError
from sojourn.live.links.proofs import Proof
from sojourn.live.links.secret import read_secret
from sojourn.live.links.tls import for_callers, for_calling


def proof_for(config: Config, name: str, process: str | None = None) -> Proof:
    """Return what the broker of a name proves itself by, or refuse a configuration that has nothing.

    Where another process plays it, that one shows its own certificate: it has no other, and neighbours
    expect none.
    """
    if not config.neighbours(name):
        return Proof(config.network.name)
    return proof_of(config, process or name)


def proof_of(config: Config, name: str) -> Proof:
    """Return what a process proves itself by to others of its network, neighbours or not."""
    network = config.network
    tls = config.tls if config.tls is not None and config.tls.peers else None
    if network.secret is None and tls is None:
        raise PeerError(
            f"{name} has neighbours and no way to know them: name a `secret` in [network], which "
            "`sojourn secret` writes, or add a [tls] table with an authority."
        )
    return Proof(
        network.name,
        read_secret(network.secret) if network.secret is not None else None,
        for_callers(tls, name) if tls is not None else None,
        for_calling(tls, name) if tls is not None else None,
    )
