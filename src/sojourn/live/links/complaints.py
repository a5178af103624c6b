"""What the log says of links that go wrong: each thing once in a while, and of strangers little in all."""

from __future__ import annotations

import logging
import ssl

from sojourn.live.listening import why_no_handshake
from sojourn.live.seldom import Seldom

STRANGERS_LINES_MAX = 20
"""Log lines about connections that nobody proved anything on, in `seldom.QUIET_S`."""


class Complaints:
    """Says what is wrong with one broker's connections to others."""

    def __init__(self, log: logging.Logger, broker: str, purpose: str) -> None:
        self._broker, self._purpose = broker, purpose
        self._seldom = Seldom(log)
        self._of_strangers = Seldom(log, lines_max=STRANGERS_LINES_MAX)
        """Apart, so that no stranger keeps what is said of neighbours out of the log."""

    def of_peer(self, peer: str, why: str, kind: str = "") -> None:
        """A connection to a neighbour ends, for this reason or one of this kind."""
        text = "%s ends a connection%s to %s: %s"
        self._seldom.warning((peer, kind or why), text, self._broker, self._purpose, peer, why)

    def of_stranger(self, host: str, why: str, kind: str) -> None:
        """A connection ends on which nobody proved anything; few lines are of a kind and address."""
        text = "%s ends a connection%s to a stranger at %s: %s"
        self._of_strangers.warning((host, kind), text, self._broker, self._purpose, host, why)

    def unknown(self, peer: str) -> None:
        """Nobody has said yet where a neighbour listens."""
        self._seldom.info((peer, "unknown"), "%s does not know yet where %s listens", self._broker, peer)

    def unreached(self, peer: str, error: Exception) -> None:
        """A neighbour cannot be called: it may be down, but a wrong certificate does not mend itself."""
        found = why_no_handshake(error) if isinstance(error, ssl.SSLError) else None
        if found is not None:
            text = "%s has no link%s to %s: %s"
            self._seldom.warning((peer, "tls"), text, self._broker, self._purpose, peer, found[1])
        else:
            why = str(error) or "no answer"
            self._seldom.info((peer, "unreached"), "%s cannot reach %s: %s", self._broker, peer, why)
