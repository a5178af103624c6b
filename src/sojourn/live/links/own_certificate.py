"""What a broker's own certificate says, which it reads before it shows it: until when, and of whom.

One that no neighbour and no client would accept is refused when it is read (`tls.py`), and not found out by
links that stay down. What can be read by OpenSSL alone is shown as it is.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path
from typing import NamedTuple


class OwnCertificate(NamedTuple):
    """One certificate, as far as it matters to whoever it is shown to."""

    until_s: float
    common_names: list[str]
    """Neighbours that are called look at these: there is to be one, the broker's name."""
    alternative_names: list[str]
    """Neighbours that call look at these, or at the common name if there are none."""

    def is_of(self, broker: str) -> bool:
        """Whether neighbours take who shows it for a broker, whichever of both calls."""
        if self.common_names != [broker]:
            return False
        if (
            not self.alternative_names or not broker.isascii() or _is_address(broker)
        ):  # these are written otherwise
            return True
        _, dot, domain = broker.lower().partition(".")
        return not {broker.lower(), f"*{dot}{domain}"}.isdisjoint(map(str.lower, self.alternative_names))

    @property
    def end(self) -> str:
        """When it runs out, for people."""
        return f"{dt.datetime.fromtimestamp(self.until_s, dt.UTC):%Y-%m-%d %H:%M} UTC"


def own_certificate(path: Path) -> OwnCertificate | None:
    """Read the first certificate of a PEM file; None if it is an odd one, which OpenSSL may take anyway."""
    from cryptography import x509  # noqa: PLC0415 - takes a while to load
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - takes a while to load

    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
        common = [str(one.value) for one in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        extensions = found.extensions
    except (OSError, ValueError):
        return None
    try:
        alternatives = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = []
    else:
        names = alternatives.get_values_for_type(x509.DNSName)
    return OwnCertificate(found.not_valid_after_utc.timestamp(), common, names)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
