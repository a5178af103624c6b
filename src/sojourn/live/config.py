"""The configuration of a network of brokers: one TOML file that all of them read.

    links = [["B1", "B2"]]

    [[brokers]]
    name = "B1"
    listen = "127.0.0.1:1883"

Every broker reads the same file and is told its name, so there is one place to look. Values that do not fit
are refused with the place they stand at. `templates.py` writes such files. Paths that are not absolute begin
at the folder of the file, wherever a broker is started; port 0 is any that is free (`addresses.py`).
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from sojourn.broker.roll import check_roll, enrolled
from sojourn.broker.settings import MobilityConfig, RoutingConfig, Settings
from sojourn.errors import SojournError, typed
from sojourn.live.apart import why_not_apart
from sojourn.live.choices import with_choices
from sojourn.live.copying import why_no_copies
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.ranges import Share, ZeroOrMore, why_out_of_range

PORT_MAX = 65_535
LISTENED = ("listen", "listen_tls", "listen_ws", "listen_wss", "peers", "seats", "page", "metrics")
"""The keys of a broker that are addresses which it listens on."""
CONTROL = "control"
"""The folder in which a broker of a file is spoken to, if the file names none."""
LEARNT = ".learnt.json"
"""What the name of the file ends with in which brokers look for what was learnt, if theirs names none."""
ADDRESSES = "addresses"
"""The folder for address files that a configuration has if it needs one and names none."""


class ConfigError(SojournError):
    """A configuration cannot be used; the text says where and why."""


class Address(NamedTuple):
    """Where to listen or to call."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else: `127.example.org` is not."""
    if host.lower() == "localhost":
        return True
    try:  # an address with a zone, after %, is no name of this machine: anything may stand there
        return "%" not in host and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One broker."""

    name: str
    """Its name, in links, logs and on the page."""
    listen: str
    """Where clients connect, as HOST:PORT."""
    anonymous: bool | None = None
    """Whether clients without a name are let in at `listen`; by default only if that is on loopback."""
    listen_tls: str | None = None
    """Where clients connect by TLS, as HOST:PORT; needs [tls]."""
    anonymous_tls: bool | None = None
    """Whether clients without a name are let in at `listen_tls`; by default only if that is on loopback."""
    certificates: Literal["ignored", "optional", "required"] = "ignored"
    """Whether clients prove their names at `listen_tls` by certificates of `client_authority`."""
    listen_ws: str | None = None
    """Where clients connect by WebSockets, as HOST:PORT."""
    anonymous_ws: bool | None = None
    """As `anonymous_tls`, for `listen_ws`."""
    listen_wss: str | None = None
    """Where clients connect by WebSockets over TLS, as HOST:PORT; needs [tls]."""
    anonymous_wss: bool | None = None
    """As `anonymous_tls`, for `listen_wss`."""
    advertised: str | None = None
    """What clients elsewhere are told to use, where that differs."""
    peers: str | None = None
    """Where other brokers connect, as HOST:PORT."""
    seats: str | None = None
    """Where the processes of all other brokers connect to keep copies, as HOST:PORT; needed with `copies`."""
    page: str | None = None
    """Where the page, the metrics and the health checks are served, as HOST:PORT."""
    page_password: str | None = None
    """What one must know to see the page, as `sojourn password` prints it; without one nobody is asked."""
    metrics: str | None = None
    """Where the metrics and the health checks are served without the page, as HOST:PORT."""
    store: str | None = None
    """The folder that survives a restart; none keeps everything in memory."""
    power_safe: bool = False
    """Whether what is promised also survives the loss of power: every commit then waits for the disk."""

    @property
    def places(self) -> dict[str, Address]:
        """All addresses that it listens on, by key."""
        found = {key: getattr(self, key) for key in LISTENED}
        return {key: parse_address(text, f"{key} of {self.name}") for key, text in found.items() if text}

    @property
    def for_clients(self) -> tuple[str, ...]:
        """All places where clients connect."""
        places = (self.listen, self.listen_tls, self.listen_ws, self.listen_wss)
        return tuple(place for place in places if place is not None)

    @property
    def is_on_loopback(self) -> bool:
        """Whether only clients of this machine can reach it."""
        return all(parse_address(place, "an address").is_loopback for place in self.for_clients)


class TraceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is recorded for `sojourn audit`."""

    folder: str
    """Where the tables are written."""
    run: str = "live"
    """The name of the run among others in that folder."""
    sample: Share = 1.0
    """The share of events that is traced, the same ones at every broker."""


class PredictionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where copies of subscribers wait: with what `sojourn learn` found, only where they are likely to go."""

    file: str | None = None
    """What was learnt; a configuration file NAME.toml that names none has NAME.learnt.json beside it, which
    need not be there."""
    share: Share = 0.9
    """How much of the next broker's probability copies cover."""
    order: Literal[1, 2] = 2
    """Whether it counts only where a client is (1), or also where it came from (2)."""
    evidence_min: ZeroOrMore = 10
    """Crossings of a path, or in an hour of the day, from which on it is relied on."""


class UserConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody who may connect."""

    name: str
    """The user name that a client gives, or that its certificate proves."""
    password: str | None = None
    """As `sojourn password` prints it, never the password itself; without one only a certificate will do."""
    attributes: dict[str, str | int | float | bool] = {}
    """What access policies are asked about."""
    publish: list[str] | None = None
    """Topic filters of what it may publish; none allows all."""
    subscribe: list[str] | None = None
    """Topic filters of what it may subscribe to; none allows all."""
    publish_if: str | None = None
    """A filter that the attributes of its events must satisfy, with user properties and payload alike."""
    subscribe_if: str | None = None
    """A filter that the attributes of events must satisfy for it to see them."""


class TlsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificates; `{broker}` in a path stands for the broker's name."""

    certificate: str
    """The PEM file with a broker's certificate."""
    key: str
    """The PEM file with its private key."""
    authority: str | None = None
    """Whose certificates brokers accept from one another."""
    peers: bool = True
    """Whether the links between brokers are encrypted too, and both ends show a certificate."""
    client_authority: str | None = None
    """Whose certificates prove the names of clients, where a broker asks for them (`certificates`)."""


class JwtConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens as passwords: signed by somebody else, who says what the bearer may do.

    The claims `publish`, `subscribe` (lists of topic filters), `publish_if`, `subscribe_if` (filters) and
    `attributes` (an object) mean what they mean for a user of the configuration; `sub` is the user name.
    """

    key: str
    """The file with the shared secret (HS256), of 32 bytes or more and for its owner alone, or the public key
    (RS256, ES256, EdDSA) in PEM."""
    algorithm: Literal["HS256", "RS256", "ES256", "EdDSA"] = "HS256"
    """How tokens are signed."""
    audience: str | None = None
    """Whom tokens must be for; none asks nothing."""
    issuer: str | None = None
    """Who must have issued them; none asks nothing."""


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How brokers find one another, and how they know each other."""

    name: str = "sojourn"
    """The name of the network: a broker of another one is no neighbour, whatever it knows."""
    secret: str | None = None
    """The file with the secret by which neighbours prove who they are; see `links/secret.py`."""

    joined: list[str] = []
    """The brokers that joined since all were first started, in that order; `sojourn join` writes it."""
    left: dict[str, list[str]] = {}
    """By broker that has left: those it was linked to; `sojourn leave` writes it."""
    control: str | None = None
    """The folder where operators speak to brokers on this machine (`sojourn reload`, `kick`, `ban`); a file
    that names none has one beside it, a configuration that is not a file has none."""
    addresses: str | None = None
    """The folder where brokers with a port of 0 say which it became. A file that has such a port and names no
    folder has one beside it."""


class GuestConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What clients without a user of the configuration may do; each key means what it means for a user."""

    publish: list[str] | None = None
    subscribe: list[str] | None = None
    publish_if: str | None = None
    subscribe_if: str | None = None


class SecurityConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may connect."""

    anonymous: bool | None = None
    """Clients without a name, wherever a broker does not say otherwise for one of its addresses; by default
    they are let in on loopback only."""
    origins: list[str] | None = None
    """Web pages that may connect by WebSockets, as browsers name them: `https://example.org`, or `*` for all.
    By default those of the host that the broker is on."""
    audit: str | None = None
    """The folder for logs of what brokers refused, one file each; none writes none."""
    clients_state_attributes: bool | None = None
    """Whether a client's own word about its attributes counts: by default only for anonymous ones, and only
    where nobody can prove a name."""
    guests: GuestConfig | None = None
    """What anonymous clients may do; none allows all."""
    jwt: JwtConfig | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network of brokers."""

    brokers: list[BrokerConfig]
    links: list[tuple[str, str]] = []
    network: NetworkConfig = NetworkConfig()
    mobility: MobilityConfig = MobilityConfig()
    routing: RoutingConfig = RoutingConfig()
    prediction: PredictionConfig = PredictionConfig()
    limits: Limits = Limits()
    security: SecurityConfig = SecurityConfig()
    trace: TraceConfig | None = None
    tls: TlsConfig | None = None
    users: list[UserConfig] = []

    def broker(self, name: str) -> BrokerConfig:
        """Return the broker of a name."""
        for broker in self.brokers:
            if broker.name == name:
                return broker
        names = ", ".join(broker.name for broker in self.brokers)
        raise ConfigError(f"The configuration has no broker {name!r}; it has {names}.")

    def neighbours(self, name: str) -> list[str]:
        """Return the brokers that a broker is linked to."""
        return [other for link in self.links if name in link for other in link if other != name]

    def settings(self, name: str) -> Settings:
        """Return what the broker of a name is told about itself and its network.

        The order in which brokers and links stand in the file means nothing: files may be written anew.
        """
        names, gone = [broker.name for broker in self.brokers], self.network.left
        return Settings(
            name=self.broker(name).name,
            **enrolled(names, self.links, self.network.joined, gone),
            mobility=self.mobility,
            routing=self.routing,
            limits=self.limits,
            traces=self.trace is not None,
        )


def parse_address(text: str, where: str) -> Address:
    """Read HOST:PORT, or refuse it."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) <= PORT_MAX:
        raise ConfigError(f"{where} must be HOST:PORT, such as 127.0.0.1:1883, not {text!r}.")
    return Address(host.strip("[]"), int(port))


def read_config(text: str | bytes, source: str = "the configuration") -> Config:
    """Read a configuration from TOML, or refuse it with the place that is wrong."""
    try:
        config = msgspec.toml.decode(text, type=Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"In {source}: {with_choices(str(error), Config)}.") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}.") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{source} is no text in UTF-8: line {line} has a byte that is none.") from None
    check_config(config)
    return config


def load_config(path: Path) -> Config:
    """Read a configuration file."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"There is no file {path}; `sojourn init single {typed(path)}` writes one."
        ) from None
    except IsADirectoryError:
        raise ConfigError(
            f"{path} is a folder; name the file of a configuration: `sojourn init single "
            f"{typed(path / 'sojourn.toml')}` writes one."
        ) from None
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    config = read_config(text, str(path))
    if config.prediction.file is None:
        config = replace(config, prediction=replace(config.prediction, file=f"{path.stem}{LEARNT}"))
    config = at_folder(config, path.parent)
    why = why_not_apart(config)
    if why:
        raise ConfigError(f"In {path}: {why}")
    return config


def at_folder(config: Config, folder: Path) -> Config:
    """Return a configuration whose relative paths begin at a folder, that of its file."""

    def placed(path: str) -> str:
        return str(folder.absolute() / path)

    addresses = config.network.addresses
    if addresses is None and _has_free_port(config):
        addresses = ADDRESSES
    trace, tls, jwt = config.trace, config.tls, config.security.jwt
    learnt = config.prediction.file
    if trace is not None:
        trace = replace(trace, folder=placed(trace.folder))
    if tls is not None:
        tls = replace(
            tls,
            certificate=placed(tls.certificate),
            key=placed(tls.key),
            authority=None if tls.authority is None else placed(tls.authority),
            client_authority=None if tls.client_authority is None else placed(tls.client_authority),
        )
    if jwt is not None:
        jwt = replace(jwt, key=placed(jwt.key))
    return replace(
        config,
        brokers=[
            broker if broker.store is None else replace(broker, store=placed(broker.store))
            for broker in config.brokers
        ],
        network=replace(
            config.network,
            addresses=None if addresses is None else placed(addresses),
            secret=None if config.network.secret is None else placed(config.network.secret),
            control=placed(config.network.control or CONTROL),
        ),
        prediction=replace(config.prediction, file=None if learnt is None else placed(learnt)),
        trace=trace,
        tls=tls,
        security=replace(
            config.security,
            jwt=jwt,
            audit=None if config.security.audit is None else placed(config.security.audit),
        ),
    )


def _has_free_port(config: Config) -> bool:
    """Whether some broker listens on any port that is free."""
    return any(not place.port for broker in config.brokers for place in broker.places.values())


def check_config(config: Config) -> None:
    """Refuse numbers out of range, names given twice, links to nowhere and addresses that are none."""
    why = why_out_of_range(config)
    if why:
        raise ConfigError(why)
    names = [broker.name for broker in config.brokers]
    if not names:
        raise ConfigError("A configuration has at least one [[brokers]] table.")
    for name in names:
        if names.count(name) > 1 or not name:
            raise ConfigError(f"The broker name {name!r} is empty or given twice; each broker has its own.")
        if not name.isprintable():
            raise ConfigError(
                f"The broker name {name!r} has a character that cannot be printed, such as the end of a "
                "line; it stands in logs and commands, so leave that out."
            )
        if "/" in name or name.startswith("."):
            raise ConfigError(
                f"The broker name {name!r} is the name of files too: it has no / and no dot first."
            )
    for broker in config.brokers:
        _check_addresses(config, broker)
    _check_links(config.links, names)
    check_roll(names, config.network.joined, config.network.left, config.settings)
    _check_copies(config)
    users = [user.name for user in config.users]
    if len(set(users)) < len(users):
        raise ConfigError("Two users have the same name; each needs its own.")
    if "" in users:
        raise ConfigError("A user has an empty name, which is that of clients without one; give it another.")


def _check_addresses(config: Config, broker: BrokerConfig) -> None:
    for key in LISTENED:
        text = getattr(broker, key)
        if text is not None:
            parse_address(text, f"{key} of {broker.name}")
    for key in ("listen_tls", "listen_wss"):
        if getattr(broker, key) is not None and config.tls is None:
            raise ConfigError(f"{key} of {broker.name} needs a [tls] table with certificate and key.")
    _check_certificates(config, broker)
    _check_page(broker)
    encrypts = config.tls is not None and config.tls.peers
    for key, text in (("peers", broker.peers), ("seats", broker.seats)):
        if text is not None and not encrypts and not parse_address(text, key).is_loopback:
            raise ConfigError(
                f"{key} of {broker.name} is {text}, which others can reach: brokers know each other "
                "by certificate there, so add a [tls] table with an authority."
            )


def _check_copies(config: Config) -> None:
    why = why_no_copies(config)
    if why:
        raise ConfigError(why)


def _check_page(broker: BrokerConfig) -> None:
    if broker.page is None or broker.page_password is not None:
        return
    if not parse_address(broker.page, f"page of {broker.name}").is_loopback:
        raise ConfigError(
            f"page of {broker.name} is {broker.page}, which others can reach, and shows who is connected: "
            "add a page_password, which `sojourn password` prints, or let it be on loopback."
        )


def _check_certificates(config: Config, broker: BrokerConfig) -> None:
    if broker.certificates == "ignored":
        return
    tls = config.tls
    if broker.listen_tls is None or tls is None or tls.client_authority is None:
        raise ConfigError(f"certificates of {broker.name} needs listen_tls, and a client_authority in [tls].")
    if tls.peers and tls.authority == tls.client_authority and config.network.secret is None:
        raise ConfigError(
            "In [tls] the client_authority is that of the brokers too, so that a client with a broker's name "
            "could pose as one: use two authorities, or name a `secret` in [network]."
        )


def _check_links(links: list[tuple[str, str]], names: list[str]) -> None:
    for one, other in links:
        for name in (one, other):
            if name not in names:
                raise ConfigError(f"links names the broker {name!r}, which there is none of.")
        if one == other:
            raise ConfigError(f"links connects {one!r} with itself.")


def single_broker(address: Address, limits: Limits | None = None, name: str = "B1") -> Config:
    """Return the configuration of one broker with sensible defaults."""
    return Config(
        brokers=[BrokerConfig(name=name, listen=str(address))],
        limits=limits if limits is not None else Limits(),
    )
