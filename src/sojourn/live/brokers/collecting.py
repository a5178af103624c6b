"""When Python looks for objects that refer to one another in a circle, and how long that takes at once.

Python looks at young objects often, and now and then at all of them, which takes a tenth of a microsecond and
more for each: some 0.4 s at once for a broker with thousands of filters over attributes. A broker makes
hardly any circles. Connections, sessions, subscriptions and events let go of one another when they end, and
are gone at once. So young objects are looked at in portions of some ten thousand, and whatever is still there
when the older portion has been looked at is *frozen*: it is not looked at again. So no look takes longer
because a broker has much, and there is no look at everything.

The price: a circle that comes apart from the rest after it was frozen is never found. Those that were left by
reading filters are no circles any more (`interest/topicsets.py`), and a test looks that clients which come,
subscribe, publish and go leave none behind.
"""

from __future__ import annotations

import gc

THRESHOLDS = (10_000, 5, 1_000)
"""New objects before the young are looked at; how often that is done before those that stayed are looked at;
and those before all of them, which never happens, as they are frozen before."""


def rest_the_collector() -> None:
    """Let the cycle collector look at what is new alone, from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _freeze not in gc.callbacks:
        gc.callbacks.append(_freeze)


def _freeze(phase: str, info: dict[str, int]) -> None:
    """Freeze what has been looked at twice."""
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()
