"""When the tree of a moving publisher is built and torn down: one mechanism, three independent choices.

Paper 000, section 4 describes five protocols and says that they combine. All of them answer the same
questions, and a `Policy` is the answers:

1. Is the tree at the next broker built when the publisher arrives there, or already when it leaves the old
   one, by prediction (prefetching, 4.2)?
2. How long does the old broker keep the old tree: not at all, or for a delay, so that the new tree can be
   grafted onto it (delayed, 4.4)?
3. Do some brokers keep a tree for the publisher all the time (proxy, 4.3)?

A wrong prediction leaves a tree where nobody comes; the broker gives up waiting after `patience_s`. The
paper assumes perfect prediction and names no such time; here it is the unadvertisement delay, and at least
the 10 s of Table 4.
"""

import math
from dataclasses import dataclass

from sojourn.errors import SojournError

STANDARD = "standard"
PREFETCHING = "prefetching"
PROXY = "proxy"
DELAYED = "delayed"
PREFETCH_DELAYED = "prefetch-delayed"

PARTS = (PREFETCHING, PROXY, DELAYED)
DELAY_S = 10.0
PROXIES = 5


class PolicyError(SojournError):
    """A protocol's name or parameter has no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a broker does with the trees of publishers that move; the default is the standard protocol."""

    predicts: bool = False
    """Whether the old broker has the tree built at the broker where the publisher is expected."""
    delay_s: float = 0.0
    """How long the old broker keeps the tree after the publisher left."""
    proxies: int = 0
    """How many brokers always keep a tree for a publisher."""
    patience_s: float = DELAY_S
    """How long a tree waits for an expected publisher."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.delay_s) and self.delay_s >= 0):
            raise PolicyError(f"unadvertise_delay_s must be 0 or more, not {self.delay_s:g}.")
        if not (math.isfinite(self.patience_s) and self.patience_s >= 0):
            raise PolicyError(f"patience_s must be 0 or more, not {self.patience_s:g}.")
        if self.proxies < 0:
            raise PolicyError(f"proxies must be 0 or more, not {self.proxies}.")

    @classmethod
    def named(cls, protocol: str, *, delay_s: float = DELAY_S, proxies: int = PROXIES) -> "Policy":
        """The policy of a protocol's name, or of several joined by `+`."""
        parts = protocol.replace(PREFETCH_DELAYED, f"{PREFETCHING}+{DELAYED}").split("+")
        if parts == [STANDARD]:
            return cls()
        for part in parts:
            if part not in PARTS:
                known = ", ".join((STANDARD, *PARTS, PREFETCH_DELAYED))
                raise PolicyError(f"protocol may be {known} or parts joined by +, not {protocol!r}.")
        return cls(
            predicts=PREFETCHING in parts,
            delay_s=delay_s if DELAYED in parts else 0.0,
            proxies=proxies if PROXY in parts else 0,
            # A short delay must not tear a prefetched tree down before anybody could arrive.
            patience_s=max(delay_s, DELAY_S),
        )
