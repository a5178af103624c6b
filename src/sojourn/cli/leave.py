"""`sojourn leave`: a broker goes while others, and their clients, go on; who never came is taken back.

What can refuse does so before the others are told, for that is for good. Whatever comes between, the same
command does later what is still to be done.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sojourn.broker.roll import behind, by_whom
from sojourn.cli.roll_call import File, JoinError, never_came, say, who_came
from sojourn.errors import typed
from sojourn.live.brokers.control import Answer, ControlError, ask
from sojourn.live.brokers.source import reload_of
from sojourn.live.config import Config, load_config
from sojourn.live.rewriting import without_broker, write

LOOK_S = 0.3
SAY_S = 5.0
"""How often it is said what is waited for."""


def leave(
    file: File,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The broker that leaves.")],
    *,
    dead: Annotated[
        bool,
        typer.Option(
            "--dead",
            help="Its process is gone for good. With copies it leaves from where another process plays it, "
            "and nothing is lost; without, what only it had is.",
        ),
    ] = False,
    wait: Annotated[
        float, typer.Option(help="How many seconds it may take to give away what it has.")
    ] = 600.0,
) -> None:
    """Take a broker out of a network that runs: its sessions go to its neighbour, then it stops.

    It must be at the end of a branch: no other brokers reach each other by it. With copies it stops when
    others have those that it kept, which a majority of the brokers' processes decides. May be run again after
    whatever went wrong. Example: sojourn leave line.toml B4
    """
    config = load_config(file)
    folder = str(config.network.control)
    is_written = name in config.network.left
    if is_written and not (dead and _is_still_known(config, name)):
        _stop(folder, name)
        typer.echo(f"{file} says that {name} has left; there is nothing to do.")
        return
    if not is_written:
        config.broker(name)
        _check_nobody_waits(file, config, name, dead=dead)
        if dead and never_came(config, name):
            _take_back(file, config, name)
            return
        _check_copies(config, name)
    until_s = time.monotonic() + wait
    if not _has_left(config, name):
        player = _player(config, name) if dead else name
        if player is None:
            _ask_another(config, name, {"command": "roll", "dead": name})
        else:
            guest = {"guest": name} if player != name else {}
            _empty(folder, name, until_s, player, guest)
            say(ask(folder, player, {"command": "farewell", **guest}).said)
    if config.mobility.copies:
        _wait_for_votes(config, name, until_s)
    if is_written:
        return
    write(file, without_broker(file.read_text(encoding="utf-8"), name))
    _stop(folder, name)
    typer.echo(f"{file} is without {name} now; copy it to the other machines, if there are any.")


def _is_still_known(config: Config, name: str) -> bool:
    """Whether the network has a broker that the file says has left: it joined when nobody here could know."""
    known = who_came(config)
    return bool(known.rolls) and known.has(name) and name not in known.left


def _check_copies(config: Config, name: str) -> None:
    """Refuse to let a broker go without which there are too few for copies; whoever never came is none.

    Two are enough, but it is said what that means.
    """
    copies, known = config.mobility.copies, who_came(config)
    there = [one.name for one in config.brokers if not known.rolls or known.has(one.name)]
    if copies and len(there) - 1 <= copies and name not in known.left:
        raise JoinError(
            f"{name} cannot leave: with copies = {copies} in [mobility] there are at least {copies + 1} "
            "brokers."
        )
    if copies and len(there) - 1 == 2 and name not in known.left:
        left = " and ".join(one for one in there if one != name)
        typer.echo(
            f"sojourn: {left} are left then, and with copies = {copies} in [mobility] each waits while "
            "the other is away; with 0, what only a lost disk had is lost.",
            err=True,
        )


def _check_nobody_waits(file: Path, config: Config, name: str, *, dead: bool) -> None:
    """Refuse to let a broker go by which others of the file would join that never came: nobody else would."""
    known = who_came(config, trusted=None if dead else name)
    waiting = [one for one in behind(config.settings(name), name) if not known.has(one)]
    if not known.rolls or not waiting:
        return
    first = f"`sojourn leave {typed(file)} {typed(waiting[0])} --dead`"
    then = f", then {', '.join(waiting[1:])} likewise" if waiting[1:] else ""
    what = "has left the network, but cannot be taken out" if name in known.left else "cannot leave"
    raise JoinError(
        f"{name} {what}: by it would join {', '.join(reversed(waiting))} of {file}, which never came. Take "
        f"that back first with {first}{then}, and run this again."
    )


def _take_back(file: Path, config: Config, name: str) -> None:
    """Take a broker out of the file that never came, and let it be expected no more."""
    folder, to = str(config.network.control), by_whom(config.settings(name), name)
    assert to is not None, "it is among those that joined"
    before = file.read_text(encoding="utf-8")
    write(file, without_broker(before, name))
    try:
        say(ask(folder, to, reload_of(file)).said)
    except ControlError as error:  # it never came itself, or has left: nobody lets this one in
        if not error.is_absent:
            raise
    if who_came(config).has(name):
        write(file, before)
        raise JoinError(f"{name} has just joined by {to}: let it leave without --dead, or stop it first.")
    typer.echo(f"{name} never came; {file} is without it now. Its name is not given again.")


def _player(config: Config, name: str) -> str | None:
    """Return the process on this machine that plays a broker whose own is gone; None if nobody does."""
    if not config.mobility.copies:
        return None
    for broker in config.brokers:
        if broker.name != name:
            try:
                found = ask(str(config.network.control), broker.name, {"command": "roll"}).found
            except ControlError as error:
                if not error.is_absent:
                    raise
            else:
                if name in found.get("plays", ()):
                    return broker.name
    return None


def _wait_for_votes(config: Config, name: str, until_s: float) -> None:
    """Wait until the process of a broker that has left is not needed for copies any more."""
    say_s = 0.0
    while True:
        found = _ask_another(config, name, {"command": "roll", "of": name}, is_quiet=True).found
        if name not in found.get("voters", ()):
            return
        why = f"copies still need the process of {name}: {found.get('why', 'its broker has not left')}"
        if time.monotonic() > until_s:
            raise JoinError(f"{name} has left the network, but {why}. Run this again to go on.")
        if time.monotonic() >= say_s:
            say_s = time.monotonic() + SAY_S
            say(f"waiting: {why}")
        time.sleep(LOOK_S)


def _empty(folder: str, name: str, until_s: float, player: str, guest: dict[str, str]) -> None:
    """Let a broker give away all that it has, where it is played."""
    say_s = 0.0
    while True:
        try:
            answer = ask(folder, player, {"command": "leave", **guest})
        except ControlError as error:
            if not error.is_absent:
                raise
            raise JoinError(
                f"{name} does not run on this machine: start it, so that it can give away all it has, and "
                "run this where it runs; or, if it is gone for good, with --dead."
            ) from None
        if not answer.found["left"]:
            return
        if time.monotonic() > until_s:
            raise JoinError(f"{answer.said}, and --wait has passed; run this again to go on.")
        if time.monotonic() >= say_s:
            say_s = time.monotonic() + SAY_S
            say(answer.said)
        time.sleep(LOOK_S)


def _has_left(config: Config, name: str) -> bool:
    """Whether a broker that is interrupted after its farewell is known by others to have left."""
    try:
        answer = _ask_another(config, name, {"command": "roll"}, is_quiet=True)
    except JoinError:
        return False
    return name in answer.found["left"]


def _ask_another(config: Config, name: str, what: dict[str, object], *, is_quiet: bool = False) -> Answer:
    """Ask any broker of this machine but one."""
    for broker in config.brokers:
        if broker.name == name:
            continue
        try:
            answer = ask(str(config.network.control), broker.name, what)
        except ControlError as error:
            if not error.is_absent:
                raise
        else:
            if not is_quiet:
                say(answer.said)
            return answer
    raise JoinError(f"No other broker than {name} runs on this machine: run this where one does.")


def _stop(folder: str, name: str) -> None:
    try:
        ask(folder, name, {"command": "stop"})
    except ControlError as error:
        if not error.is_absent:
            raise
