"""`sojourn pub`: publish an event from the shell."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
import typer

from sojourn.cli.shell_client import (
    CaFileOption,
    CertificateOption,
    KeyOption,
    QosOption,
    ShellError,
    UrlArgument,
    UserOption,
    client_for,
    connected,
)
from sojourn.interest.values import Scalar
from sojourn.mqtt.conventions import value_of

LINES_WAITING_MAX = 100


def pub(  # noqa: PLR0913 - each is an option of the command
    url: UrlArgument,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to publish, such as cars/7.")],
    payload: Annotated[
        str, typer.Argument(metavar="PAYLOAD|-", help="What to publish; - reads standard input.")
    ] = "",
    *,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            "-a",
            metavar="NAME=VALUE",
            help="An attribute; may be repeated. 7, 1.5, true and false are numbers and booleans; the text 7 "
            "is written NAME='\"7\"'.",
        ),
    ] = None,
    qos: QosOption = 1,
    retain: Annotated[
        bool, typer.Option("--retain", help="Keep it for later subscribers to the topic.")
    ] = False,
    policy: Annotated[
        str, typer.Option(help="Who may get it: an expression over subscribers' attributes.")
    ] = "",
    lines: Annotated[bool, typer.Option("--lines", help="With -: each line is an event of its own.")] = False,
    user: UserOption = None,
    ca_file: CaFileOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
) -> None:
    """Publish an event, and return when the broker has promised to keep it (QoS 1 and 2).

    A payload that is a JSON object gives the event its fields as attributes too; a text in it stays a text,
    and NaN or Infinity makes it no JSON. Examples:

    sojourn pub localhost:1883 cars/7 '{"speed": 93}' -a road=A2

    tail -f log | sojourn pub localhost:1883 log - --lines
    """
    attributes = dict(_attribute(text) for text in attribute or ())
    client = client_for(url, user=user, ca_file=ca_file, certificate=certificate, key=key)

    async def publish() -> None:
        async with connected(client):
            has_warned = False
            async for body in _bodies(payload, lines=lines):
                if not has_warned and (why := why_no_json(body)) is not None:
                    has_warned = True
                    typer.echo(
                        f"sojourn: the payload looks like JSON and is none ({why}); it is sent as text, "
                        "without attributes of its own.",
                        err=True,
                    )
                await client.publish(
                    topic, body, attributes=attributes, qos=qos, retain=retain, policy=policy
                )

    asyncio.run(publish())


async def _bodies(payload: str, *, lines: bool) -> AsyncIterator[bytes]:
    """What to publish; a thread reads what may come slowly, for the connection is to be kept alive."""
    if payload != "-":
        yield payload.encode()
        return
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=LINES_WAITING_MAX)

    def read() -> None:
        source = sys.stdin.buffer
        for body in source if lines else [source.read()]:
            asyncio.run_coroutine_threadsafe(queue.put(body), loop).result()
        asyncio.run_coroutine_threadsafe(queue.put(None), loop).result()

    threading.Thread(target=read, daemon=True).start()
    while (body := await queue.get()) is not None:
        yield body.rstrip(b"\r\n") if lines else body


def why_no_json(body: bytes) -> str | None:
    """What is wrong with a payload that looks like JSON and is none; None for all others."""
    if not body.lstrip().startswith((b"{", b"[")):
        return None
    try:
        msgspec.json.decode(body)  # as brokers read it: NaN is no JSON
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return str(error).removeprefix("JSON is malformed: ")
    return None


def _attribute(text: str) -> tuple[str, Scalar]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ShellError(f"--attribute is NAME=VALUE, such as speed=93, not {text!r}.")
    return name, value_of(value)
