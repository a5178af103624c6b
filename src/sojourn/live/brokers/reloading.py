"""A changed configuration in a running broker: users, permissions, tokens, certificates, secrets, and paths.

Paths are where clients go next, as far as that was learnt anew (`learning.py`). What else has changed waits
for a restart, and is named. A configuration that cannot be used changes nothing. Clients that would not be
let in any more are sent away, and sessions keep to the rights of today, whether clients are here or not.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from sojourn.broker import facts
from sojourn.broker.settings import Settings
from sojourn.live.brokers.admission import Doorkeeper
from sojourn.live.brokers.node import Node
from sojourn.live.brokers.regrouped import following, may_follow, stand_in
from sojourn.live.brokers.rights_today import rights_today
from sojourn.live.config import BrokerConfig, Config
from sojourn.live.learning import paths_for
from sojourn.live.links.knowing import proof_for
from sojourn.live.links.proofs import Proof
from sojourn.mobility.prediction import Foreseen

RELOADED = ("users", "security", "tls", "prediction")
"""What takes effect at once; beside it the secret, and who comes in where."""
OF_BROKERS = ("anonymous", "anonymous_tls", "anonymous_ws", "anonymous_wss", "page_password", "certificates")


class Reload(NamedTuple):
    """A configuration that was read anew and found in order."""

    config: Config
    """What holds now: the old one, but for what takes effect at once."""
    doorkeeper: Doorkeeper
    proof: Proof
    learnt: tuple[Foreseen, ...]
    """Where clients of this broker go next."""
    waits: list[str]
    """What has changed and waits for a restart."""


def prepared(old: Config, new: Config, settings: Settings) -> Reload:
    """Return what is to hold, or refuse the new configuration."""
    name = settings.name
    new.broker(name)
    if may_follow(settings, new):  # who joins or leaves is no reason for a restart
        new = following(new, settings, old)
        roll = {"joined": old.network.joined, "left": old.network.left}
        new = replace(new, network=replace(new.network, **roll))
    config = in_force(old, new)
    waits = []
    for key in Config.__struct_fields__:
        if key not in RELOADED and _in_order(getattr(config, key)) != _in_order(getattr(new, key)):
            waits += _of_brokers(config, new) if key == "brokers" else [key]
    if old.security.origins != new.security.origins:
        waits.append("origins")
    return _reload(config, name, name, waits)


def prepared_for_guest(old: Config, new: Config, name: str, process: str) -> Reload:
    """Return what is to hold for a broker that a process plays for another one."""
    return _reload(in_force(old, new), name, process, [])


def _reload(config: Config, name: str, process: str, waits: list[str]) -> Reload:
    proof = proof_for(config, name, process)
    return Reload(config, Doorkeeper(config, name), proof, paths_for(config, name), waits)


def in_force(old: Config, new: Config) -> Config:
    """Return the old configuration, but for what takes effect at once, and who was known by name alone."""
    return replace(
        old,
        brokers=[_merged(one, new) for one in old.brokers],
        network=replace(old.network, secret=new.network.secret),
        users=new.users,
        security=new.security,
        tls=new.tls,
        prediction=new.prediction,
    )


def _in_order(value: Any) -> Any:
    """Return brokers and links in an order that says nothing; anything else as it is."""
    if not isinstance(value, list):
        return value
    return sorted(sorted(one) if isinstance(one, tuple) else msgspec.json.encode(one) for one in value)


def _merged(one: BrokerConfig, new: Config) -> BrokerConfig:
    found = next((other for other in new.brokers if other.name == one.name), one)
    if one == stand_in(one.name):
        return found
    is_there = one.listen_tls is not None and found.listen_tls is not None
    # Whether an address asks for certificates waits for a restart with the address itself.
    keys = [key for key in OF_BROKERS if is_there or key != "certificates"]
    return replace(one, **{key: getattr(found, key) for key in keys})


def _of_brokers(config: Config, new: Config) -> list[str]:
    """Name what waits of brokers; where others are in the file than before, just that."""
    before, after = ({one.name: one for one in each.brokers} for each in (config, new))
    if before.keys() != after.keys():
        return ["brokers"]
    pairs = [(one, after[name]) for name, one in before.items()]
    keys = BrokerConfig.__struct_fields__
    return [
        f"{key} of brokers"
        for key in keys
        if any(getattr(one, key) != getattr(other, key) for one, other in pairs)
    ]


def apply(node: Node, reload: Reload) -> int:
    """Let a configuration hold from now on; return how many clients were sent away."""
    old, node.config = node.config, reload.config
    # The store of a guest is a copy, and not where its configuration says.
    node.place = replace(reload.config.broker(node.place.name), store=node.place.store)
    node.doorkeeper = reload.doorkeeper
    node.witnesses.audit_to(reload.config.security.audit)
    if reload.learnt != node.broker.settings.learnt:
        node.tell(facts.PathsLearnt(reload.learnt))
    broker = node.broker
    broker.ruling.rights = partial(rights_today, reload.config)
    for fact in list(rights_today(reload.config, broker.ruling.entitled(broker.network), old)):
        node.tell(fact)
    sent_away = 0
    for number, entry in list(node.entries.items()):
        refusal = reload.doorkeeper.still(entry)
        if refusal is not None:
            connection = node.core.state.connections.get(number)
            is_in = connection is not None and connection.session is not None
            kind = facts.ClientDismissed if is_in else facts.ClientRefused  # it waits to be let in
            node.tell(kind(number, int(refusal.code), refusal.text))
            sent_away += 1
    return sent_away
