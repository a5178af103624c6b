"""The whole state of a broker at one moment, as bytes."""

from __future__ import annotations

import msgspec

from sojourn.broker.settings import Settings
from sojourn.broker.state_kinds import StateError


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """The whole state of a broker, and the settings that it had."""

    settings: Settings
    now: float
    state: bytes

    @classmethod
    def read(cls, data: bytes) -> Snapshot:
        """Return the snapshot that bytes hold."""
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StateError(f"a snapshot does not read ({error}).") from None

    def written(self) -> bytes:
        """Return the snapshot as bytes."""
        return msgspec.msgpack.encode(self)
