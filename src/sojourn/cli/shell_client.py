"""What `sojourn pub` and `sojourn sub` share: a connected client, and errors in one sentence."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from sojourn.errors import SojournError
from sojourn.live.client.client import Client
from sojourn.live.client.link import Address, RefusedError, StrangeAnswerError, UnreachableError
from sojourn.live.client.trust import reason_in, trusting

UrlArgument = Annotated[
    str,
    typer.Argument(
        metavar="URL", help="A broker: mqtt://HOST:PORT, mqtts:// for TLS, ws:// or wss:// for WebSockets."
    ),
]
CaFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        help="With TLS: believe the authority in this PEM file, not the machine's.",
    ),
]
CertificateOption = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="With TLS: show this certificate (PEM).")
]
KeyOption = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The certificate's key, if it has a file of its own."),
]
UserOption = Annotated[
    str | None, typer.Option("--user", help="Your name; the password is read from SOJOURN_PASSWORD.")
]
QosOption = Annotated[int, typer.Option(min=0, max=2, help="0 at most, 1 at least, 2 exactly once.")]
PASSWORD = "SOJOURN_PASSWORD"  # noqa: S105 - the name of a variable
WRONG_PASSWORD = 0x86
"""The reason code of a name or a password that is not right."""
PATIENCE_S = 30.0
WRONG_NAME = (62, 64)
"""OpenSSL's codes for certificates of another name or address."""


class ShellError(SojournError):
    """A broker cannot be reached, or an argument cannot be used."""


def client_for(
    url: str,
    *,
    client_id: str | None = None,
    session_expiry_s: int = 0,
    user: str | None = None,
    ca_file: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
) -> Client:
    """A client as the options of a command ask for it."""
    tls = None
    if ca_file or certificate or key:
        if not Address.parse(url).tls:
            raise ShellError(f"{url} is not encrypted; certificates are for mqtts:// and wss://.")
        tls = trusting(ca_file, certificate, key)
    return Client(
        url,
        client_id=client_id,
        session_expiry_s=session_expiry_s,
        patience_s=PATIENCE_S,
        username=user,
        password=os.environ.get(PASSWORD) if user else None,
        tls=tls,
    )


@asynccontextmanager
async def connected(client: Client) -> AsyncIterator[Client]:
    """Connect, and disconnect at the end; say in a sentence what stands in the way."""
    client.on_wait = lambda why: typer.echo(f"sojourn: {why.rstrip('.')}; it is asked again", err=True)
    try:
        await client.connect()
    except RefusedError as error:
        if error.code != WRONG_PASSWORD or not client.username or os.environ.get(PASSWORD):
            raise
        raise ShellError(
            f"{client.address} does not let {client.username!r} in without a password, and none was given: "
            f"it is read from the variable {PASSWORD}."
        ) from None
    except StrangeAnswerError as error:
        raise ShellError(str(error)) from None
    except UnreachableError as error:
        raise ShellError(f"{error} `sojourn serve` starts a broker.") from None
    except ssl.SSLCertVerificationError as error:
        why = reason_in(error).rstrip(".")
        way_out = (
            "use a name that it has"
            if error.verify_code in WRONG_NAME
            else "--ca-file names the file of the authority that signed it"
        )
        raise ShellError(
            f"{client.address} shows a certificate that will not do ({why}); {way_out}."
        ) from None
    except OSError as error:
        raise ShellError(f"{client.address} cannot be used ({reason_in(error)}).") from None
    try:
        yield client
    except BrokenPipeError:
        raise  # whoever reads our output has gone; the command line knows what to do
    except (OSError, TimeoutError) as error:
        raise ShellError(f"The connection to {client.address} was lost ({error}).") from None
    finally:
        await client.close()
        await asyncio.sleep(0)  # until the goodbye is written
