"""What a client believes and shows when it speaks TLS, from files."""

from __future__ import annotations

import ssl
from pathlib import Path

from sojourn.live.client.link import ClientError


def trusting(
    ca_file: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
) -> ssl.SSLContext:
    """Believe the authorities in `ca_file`, or else those of this machine; show a `certificate`, if any.

    All are PEM files. The `key` may stand in the file of the certificate.
    """
    if key is not None and certificate is None:
        raise ClientError(
            f"The key {key} is of no use without the certificate that it belongs to; name both."
        )
    for path in (ca_file, certificate, key):
        if path is not None and not Path(path).is_file():
            raise ClientError(f"{path} is not there; name a PEM file.")
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (ssl.SSLError, OSError) as error:
        raise ClientError(
            f"{ca_file} holds no certificate of an authority in PEM ({reason_in(error)})."
        ) from None
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, OSError) as error:
            which = f"{certificate} and {key} are" if key is not None else f"{certificate} is"
            way_out = "" if key else "; if its key has a file of its own, name that as key (--key)"
            raise ClientError(
                f"{which} no certificate with its key in PEM ({reason_in(error)}){way_out}."
            ) from None
    return context


def _no_password() -> str:
    """Answer instead of OpenSSL, which would ask at the terminal."""
    raise ClientError("The key is encrypted; name one without a password.")


def reason_in(error: OSError) -> str:
    """What OpenSSL or the system complains about, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return error.strerror or str(error)
