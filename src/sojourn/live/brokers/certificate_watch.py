"""How long the certificate that a broker shows still holds: a metric, and a warning while there is time."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

from sojourn.live.config import TlsConfig
from sojourn.live.links.own_certificate import own_certificate
from sojourn.live.links.tls import certificate_file

DAY_S = 86_400.0
"""How often it is looked at."""
WARN_DAYS = 14
"""With fewer left that is said, at each look."""

_log = logging.getLogger("sojourn.server")


class CertificateWatch:
    """Looks at one broker's certificate from time to time."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._file = Path()
        self._until_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def left_s(self) -> float | None:
        """For how many seconds it still holds, fewer than none once it has run out; None if there is none."""
        return None if self._until_s is None else self._until_s - time.time()

    def shows(self, tls: TlsConfig | None) -> None:
        """Note that the broker shows from now on what is in its file."""
        self._until_s = None
        if tls is not None:
            self._file = certificate_file(tls, self._broker)
            own = own_certificate(self._file)
            self._until_s = None if own is None else own.until_s
        self.look()

    def look(self) -> None:
        """Say so if little time is left, and look again tomorrow."""
        self.stop()
        left_s = self.left_s
        if left_s is None:
            return
        self._timer = asyncio.get_running_loop().call_later(DAY_S, self.look)
        if left_s <= 0:
            text = "The certificate %s of %s has run out, and nobody accepts it any more: %s"
        elif left_s < WARN_DAYS * DAY_S:
            text = f"The certificate %s of %s runs out in {left_s / DAY_S:.1f} days: %s"
        else:
            return
        _log.warning(text, self._file, self._broker, "put a fresh one there, and `sojourn reload`")

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
