"""The file that `sojourn learn` writes and brokers read: where clients go next.

    rows = paths_for(config, "B1")                 # what the broker B1 is told, or a LearningError
    write_graph(path, graph)                       # whole or not at all

Nothing in it can cost an event: it says where copies wait, and a copy is a hint. So a broker that is started
with a file that it cannot use says so and goes on without, whereas one that runs refuses it and keeps what it
has. Which brokers are likely enough is decided in `mobility/prediction.py`.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from pathlib import Path

from sojourn.errors import SojournError
from sojourn.live.config import Config
from sojourn.mobility.learnt_graph import BYTES_MAX, LearntGraph, decode_graph, encode_graph
from sojourn.mobility.prediction import Foreseen, foreseen

_log = logging.getLogger("sojourn.learning")


class LearningError(SojournError):
    """What was learnt cannot be used, or not be written."""


def paths_for(config: Config, name: str) -> tuple[Foreseen, ...]:
    """Return where clients of a broker go next, as far as it was learnt; nothing where there is no file."""
    chosen = config.prediction
    if chosen.file is None:
        return ()
    graph = read_graph(Path(chosen.file))
    if graph is None:
        return ()
    return foreseen(graph, share=chosen.share, order=chosen.order, evidence_min=chosen.evidence_min, at=name)


def paths_at_start(config: Config, name: str) -> tuple[Foreseen, ...]:
    """Return the same for a broker that is started: it goes on without what cannot be used."""
    try:
        return paths_for(config, name)
    except SojournError as error:
        _log.warning("%s starts without what was learnt of where clients go: %s", name, error)
        return ()


def read_graph(path: Path) -> LearntGraph | None:
    """Return what was learnt; None where nothing was."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > BYTES_MAX:
            raise LearningError(
                f"{path} is no file of up to {BYTES_MAX >> 20} MB: remove it, or have it learnt anew."
            )
        return decode_graph(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LearningError(
            f"{path} cannot be read ({error.strerror}): let the broker's user read it."
        ) from None
    except SojournError as error:
        raise LearningError(
            f"In {path} {error}" if not isinstance(error, LearningError) else str(error)
        ) from None


def write_graph(path: Path, graph: LearntGraph) -> None:
    """Let a file hold what was learnt, at once and whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        draft.write_bytes(encode_graph(graph))
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise LearningError(f"{path} cannot be written: {error.strerror}.") from None
