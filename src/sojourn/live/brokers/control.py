"""How operators speak to a running broker: a socket file that only their own user can open.

    control = Control(folder, "B1", handlers)
    await control.start()
    answer = ask(folder, "B1", {"command": "kick", "whom": "phone"})

One line of JSON asks and one answers: `{"said": "…", "found": {…}}`, the same for people and for programs, or
`{"refused": "…"}`. The folder is 0700 and the file
0600; where the system tells who is at the other end, anybody but the broker's own user and root is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sojourn.errors import SojournError
from sojourn.live.seldom import Seldom

LINE_BYTES_MAX = 65_536
"""Of what is asked."""
ANSWER_BYTES_MAX = 256 * 1024 * 1024
"""Of an answer: as many bans as a broker remembers, each as long as it may be, fit."""
ASK_S = 30.0
"""How long a broker listens to a question, and how long it may take to do what is asked."""
ANSWER_S = 2 * ASK_S + 5.0
"""How long whoever asks waits for what is said then."""
LOOK_S = 5.0
"""How often it is looked whether the socket is still there."""
REQUESTS_MAX = 8
PATH_BYTES_MAX = 100
"""The system's limit on the path of a socket is 107 bytes, on some 103."""
UNEXPECTED = "An unexpected error, which is a mistake of the broker's, at"

_log = logging.getLogger("sojourn.control")
_seldom = Seldom(_log)


class Answer(NamedTuple):
    """What a broker says of something that it was asked."""

    said: str
    """For people; a line each, perhaps none."""
    found: dict[str, Any]
    """The same for programs."""


Handler = Callable[[Mapping[str, Any]], Awaitable[Answer]]
"""Does what is asked, and says what was done; a `SojournError` is a refusal."""


class ControlError(SojournError):
    """A broker cannot be spoken to, or refuses what it is asked."""

    is_absent = False
    """Whether there is nobody to speak to."""


def socket_path(folder: str | Path, broker: str) -> Path:
    """Where a broker is to be spoken to."""
    return Path(folder) / f"{broker}.socket"


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """A path that is short enough for a socket: by way of the open folder, where it is long."""
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class Control:
    """Listens for what operators ask."""

    def __init__(self, folder: str | Path, broker: str, handlers: Mapping[str, Handler]) -> None:
        self.path = socket_path(folder, broker)
        self._handlers = handlers
        self._server: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None
        self._asking = 0

    async def start(self) -> None:
        """Listen; where that is not possible the broker serves all the same, and that is logged."""
        await self._listen()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        """Make the socket anew where it has gone: somebody tidied up, or took the folder for another's."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Listen again if nobody can find the way here any more."""
        if self._watching is not None and not self.path.exists():
            await self._listen()

    async def _listen(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.parent.chmod(0o700)
            self.path.unlink(missing_ok=True)  # of an earlier life: one process at a time has this name
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with _short(self.path) as path:
                listening.bind(path)
            self.path.chmod(0o600)
            self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=LINE_BYTES_MAX)
        except OSError as error:
            text = "Operators cannot speak to this broker: %s cannot be made: %s."
            _seldom.warning("control", text, self.path, error)

    async def stop(self) -> None:
        """Listen no more."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asking += 1
        try:
            answer = await self._answer(reader, writer)
            writer.write(json.dumps(answer).encode() + b"\n")
            async with asyncio.timeout(ASK_S):
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked has gone, or does not speak like this
        finally:
            self._asking -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, Any]:
        if self._asking > REQUESTS_MAX:
            return {"refused": "Too many ask at once."}
        if not _is_own(writer.get_extra_info("socket")):
            return {"refused": "Only the user that runs the broker may ask."}
        async with asyncio.timeout(ASK_S):
            line = await reader.readuntil(b"\n")
        try:
            asked = json.loads(line)
        except (ValueError, RecursionError):  # no JSON, or brackets in brackets without an end
            return {"refused": 'What is asked is one line of JSON, such as {"command": "kick"}.'}
        handler = self._handlers.get(str(asked.get("command"))) if isinstance(asked, dict) else None
        if handler is None:
            return {"refused": f"There are the commands {', '.join(self._handlers)}."}
        return await _done(handler, asked)


async def _done(handler: Handler, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Do what is asked; whatever comes of it, whoever asked is told in a sentence."""
    try:
        async with asyncio.timeout(ASK_S):
            return (await handler(asked))._asdict()
    except SojournError as error:
        return {"refused": str(error)}
    except TimeoutError:
        return {"refused": f"It took longer than {ASK_S:.0f} s and was given up, perhaps half done."}
    except Exception as error:  # noqa: BLE001 - silence would help nobody, whatever it is
        _log.error("%s %s", UNEXPECTED, asked.get("command"), exc_info=error)
        return {"refused": f"{UNEXPECTED} {asked.get('command')}: {type(error).__name__}: {error}"}


def _is_own(sock: socket.socket | None) -> bool:
    """Whether the same user, or root, is at the other end; true where the system does not tell."""
    if sock is None or not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return user in (0, os.geteuid())


def ask(folder: str | Path, broker: str, what: Mapping[str, Any]) -> Answer:
    """Ask a running broker for something; return what it says."""
    path = socket_path(folder, broker)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock, _short(path) as short:
            sock.settimeout(ANSWER_S)
            sock.connect(short)
            sock.sendall(json.dumps(what).encode() + b"\n")
            with sock.makefile("rb") as lines:
                answer = json.loads(lines.readline(ANSWER_BYTES_MAX))
    except (FileNotFoundError, ConnectionRefusedError):
        absent = ControlError(f"{broker} does not run here: {path} does not answer.")
        absent.is_absent = True
        raise absent from None
    except (OSError, ValueError) as error:
        raise ControlError(f"{broker} cannot be spoken to by {path}: {error}.") from None
    if "said" not in answer:
        raise ControlError(f"{broker} refuses: {answer.get('refused')}")
    return Answer(str(answer["said"]), {"broker": broker, **answer.get("found", {})})
