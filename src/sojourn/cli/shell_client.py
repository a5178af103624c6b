"""What `sojourn pub` and `sojourn sub` share: a connected client, and errors in one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from sojourn.errors import SojournError
from sojourn.live.client.client import Client
from sojourn.live.client.link import UnreachableError

UrlArgument = Annotated[str, typer.Argument(metavar="URL", help="A broker: mqtt://HOST:PORT or HOST:PORT.")]
UserOption = Annotated[
    str | None, typer.Option("--user", help="Your name; the password is read from SOJOURN_PASSWORD.")
]
QosOption = Annotated[int, typer.Option(min=0, max=2, help="0 at most, 1 at least, 2 exactly once.")]
PASSWORD = "SOJOURN_PASSWORD"  # noqa: S105 - the name of a variable
PATIENCE_S = 30.0


class ShellError(SojournError):
    """A broker cannot be reached, or an argument cannot be used."""


@asynccontextmanager
async def connected(client: Client) -> AsyncIterator[Client]:
    """Connect, and disconnect at the end; say in a sentence what stands in the way."""
    try:
        await client.connect()
    except UnreachableError as error:
        raise ShellError(f"{error} `sojourn serve` starts a broker.") from None
    except OSError as error:
        raise ShellError(f"{client.address} cannot be used ({error.strerror or error}).") from None
    try:
        yield client
    except BrokenPipeError:
        raise  # whoever reads our output has gone; the command line knows what to do
    except (OSError, TimeoutError) as error:
        raise ShellError(f"The connection to {client.address} was lost ({error}).") from None
    finally:
        await client.close()
        await asyncio.sleep(0)  # until the goodbye is written
