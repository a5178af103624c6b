"""TLS for clients and between brokers, from the files that a configuration names.

Clients see the broker's certificate. Brokers show theirs to one another and accept only certificates of the
configured authority whose common name (and subject alternative name) is the broker they talk to: that is how
they know each other.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sojourn.broker.proof import ProofError
from sojourn.errors import SojournError
from sojourn.live.config import TlsConfig
from sojourn.live.links.own_certificate import own_certificate


class TlsError(SojournError):
    """A certificate or key cannot be used."""


def for_clients(tls: TlsConfig, broker: str) -> ssl.SSLContext:
    """The context of a broker towards clients."""
    return _begun(ssl.PROTOCOL_TLS_SERVER, tls, broker)


def for_guests(tls: TlsConfig, broker: str, certificates: str) -> ssl.SSLContext:
    """The context of a broker towards clients that may or must prove their names by certificates."""
    context = for_clients(tls, broker)
    if certificates != "ignored":
        context.verify_mode = ssl.CERT_REQUIRED if certificates == "required" else ssl.CERT_OPTIONAL
        _load_authority(context, tls.client_authority, "client_authority")
    return context


def for_callers(tls: TlsConfig, broker: str) -> ssl.SSLContext:
    """The context of a broker that other brokers call: they must have a certificate of the authority."""
    context = _begun(ssl.PROTOCOL_TLS_SERVER, tls, broker, for_brokers=True)
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, tls)
    return context


def for_calling(tls: TlsConfig, broker: str) -> ssl.SSLContext:
    """The context of a broker that calls another one."""
    context = _begun(ssl.PROTOCOL_TLS_CLIENT, tls, broker, for_brokers=True)
    _trust(context, tls)
    return context


def for_one(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return what one connection is shown; where its address asks for certificates, that resumes nothing.

    OpenSSL looks at no certificate again when a session is resumed, so one that has run out would do. Tickets
    can be switched off. The cache of TLS 1.2 cannot, but it is that of the context which a connection begins
    with, and nobody else has this one.
    """
    if context.verify_mode is ssl.CERT_NONE:
        return context
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.minimum_version, found.verify_mode = context.minimum_version, context.verify_mode
    found.num_tickets, found.options = 0, context.options | ssl.OP_NO_TICKET

    def go_on(connection: ssl.SSLObject, _name: str | None, _began: ssl.SSLContext) -> None:
        connection.context = context

    found.sni_callback = go_on  # it is called whether the client names a server or not
    return found


def certificate_file(tls: TlsConfig, broker: str) -> Path:
    """Where the certificate of a broker is."""
    return Path(tls.certificate.replace("{broker}", broker))


def _begun(
    protocol: ssl._SSLMethod, tls: TlsConfig, broker: str, *, for_brokers: bool = False
) -> ssl.SSLContext:
    """Return a context that shows the certificate of a broker; refuse one that cannot be of use to it."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = certificate_file(tls, broker), Path(tls.key.replace("{broker}", broker))
    _load(context, certificate, key)
    own = own_certificate(certificate)
    if own is not None and own.until_s <= time.time():
        raise TlsError(
            f"The certificate {certificate} of [tls] ran out on {own.end}, and nobody accepts it any more: "
            "put a fresh one there."
        )
    if own is not None and for_brokers and not own.is_of(broker):
        of = " and ".join(own.common_names) or "nobody"
        raise TlsError(
            f"The certificate {certificate} of [tls] is of {of}, and neighbours know {broker} by one that "
            "has its name, as common name and, if there are any, among the alternative names: put it there."
        )
    return context


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    for path in (certificate, key):
        try:
            is_there = path.is_file()
        except OSError as error:  # in a folder that is closed, say
            raise TlsError(f"The file {path} of [tls] cannot be read: {error.strerror}.") from None
        if not is_there:
            raise TlsError(f"The file {path} of [tls] is not there; name a PEM file.")

    def no_password() -> str:
        """Answer instead of OpenSSL, which would ask at the terminal and keep everybody waiting."""
        raise TlsError(
            f"The key {key} of [tls] is encrypted, and nobody is there to type a password: write it without "
            f"one, as `openssl pkey -in {key}` prints it, for the broker's user alone."
        )

    try:
        context.load_cert_chain(certificate, key, password=no_password)
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"{certificate} and {key} of [tls] do not fit together: {error}.") from None


def _trust(context: ssl.SSLContext, tls: TlsConfig) -> None:
    if tls.authority is None:
        raise TlsError("Brokers know each other by certificate: name the `authority` file in [tls].")
    _load_authority(context, tls.authority, "authority")


def _load_authority(context: ssl.SSLContext, path: str | None, key: str) -> None:
    if path is None:  # a file has none without one where the address is new
        raise TlsError(
            f"[tls] has no {key}, and `listen_tls` asks for certificates as long as it is open: leave the "
            f"{key} there until the broker is started anew."
        )
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"The {key} {path} of [tls] cannot be read: {error}.") from None


def certified_name(transport: asyncio.BaseTransport) -> str | None:
    """Return the name that the other side has proved by certificate; None without TLS."""
    if transport.get_extra_info("sslcontext") is None:
        return None
    said: Mapping[str, Any] = transport.get_extra_info("peercert") or {}
    if said and until_s(said) <= time.time():
        raise ProofError("its certificate has run out.")
    return common_name(said)


def until_s(certificate: Mapping[str, Any]) -> float:
    """When a certificate runs out, of which `getpeercert` gives this."""
    return float(ssl.cert_time_to_seconds(str(certificate["notAfter"])))


def common_name(certificate: Mapping[str, Any]) -> str:
    """The common name in what `getpeercert` gives; empty if there is none, or more than one."""
    names = [
        str(value) for part in certificate.get("subject", ()) for key, value in part if key == "commonName"
    ]
    return names[0] if len(names) == 1 else ""
