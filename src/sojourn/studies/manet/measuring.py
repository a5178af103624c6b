"""The study's measures, as SQL over the facts that its runs record (`recording.py`).

Bytes are those handed to the radio, once per hop, by node and second of the measured time. A measure of a
kind of packet has its name at the end (`bytes_s beacon`, `lost event: no route`).
"""

from sojourn.adhoc.packets import DATA, KINDS, REASONS, WHATS
from sojourn.pipeline.measuring import Measuring
from sojourn.sim.manet.world import CONTROL_KINDS

_PACKETS = (*KINDS[1:DATA], *WHATS[1:])
_LOSSES = tuple(f"{packet}: {reason}" for packet in _PACKETS for reason in REASONS[1:])
_CONTROL = ", ".join(f"'{kind}'" for kind in CONTROL_KINDS)
_COUNTED = ("duplicate", "unauthorised", "copy", "stale_sent", "frame", "retried", "broken", "collision")


def _given(name: str) -> str:
    return f"cast(get_json_object(spec_json, '$.manet.{name}') AS double)"


_RATE = f"(1D / ((duration_s - {_given('warmup_s')}) * {_given('nodes')}))"


def _windows(what: str, of: str | None = None, column: str = "times") -> str:
    which = "" if of is None else f" AND of = '{of}'"
    return f"sum({column}) FILTER (WHERE what = '{what}'{which})"


def _observed(what: str, of: str | None = None, how: str = "sum") -> str:
    which = "" if of is None else f" AND of = '{of}'"
    return f"{how}(value) FILTER (WHERE what = '{what}'{which})"


MEASURING = Measuring(
    sums={
        "observations": {
            **{
                f"{what}_{of}": f"coalesce({_observed(what, of)}, 0)"
                for what in ("due", "got")
                for of in ("attended", "alone")
            },
            "delays": _observed("delay", how="count"),
            "delays_s": _observed("delay"),
            "delay_at": "percentile(1000D * value, 0.5) FILTER (WHERE what = 'delay')",
            "path_share": _observed("paths", how="avg"),
            "void_share": _observed("void"),
            "stalest_s": _observed("stale_s"),
        },
        "windows": {
            **{f"n_{what}": _windows(what) for what in _COUNTED},
            "sent_bytes": _windows("sent", column="total"),
            "control_bytes": f"sum(total) FILTER (WHERE what = 'sent' AND of IN ({_CONTROL}))",
            **{f"sent_{at}": _windows("sent", packet, "total") for at, packet in enumerate(_PACKETS)},
            **{f"lost_{at}": _windows("lost", why) for at, why in enumerate(_LOSSES)},
            "matched": _windows("matched"),
            "ages_s": _windows("matched", column="total"),
            "arrived": _windows("arrived"),
            "walked": _windows("arrived", column="total"),
        },
    },
    measures={
        "expected": "due_attended + due_alone",
        "delivered": "got_attended + got_alone",
        "delivery_ratio": "(got_attended + got_alone) / nullif(due_attended + due_alone, 0)",
        "delay_ms": "1000D * (delays_s / nullif(delays, 0))",
        "delay_median_ms": "delay_at",
        "load_bytes_s": f"coalesce(sent_bytes, 0) * {_RATE}",
        "control_bytes_s": f"coalesce(control_bytes, 0) * {_RATE}",
        "data_bytes_s": f"(coalesce(sent_bytes, 0) - coalesce(control_bytes, 0)) * {_RATE}",
        "duplicates": "n_duplicate",
        "copies": "n_copy",
        "unauthorised": "n_unauthorised",
        "stale_sent": "n_stale_sent",
        "stale_s": "stalest_s",
        "age_s": "ages_s / nullif(matched, 0)",
        "hops": "walked / nullif(arrived, 0)",
        "due_attended": "due_attended",
        "got_attended": "got_attended",
        "due_alone": "due_alone",
        "got_alone": "got_alone",
        "frames": "n_frame",
        "retried": "n_retried",
        "broken": "n_broken",
        "collisions": "n_collision",
        "paths": "path_share",
        "void": "void_share",
        **{f"bytes_s {packet}": f"sent_{at} * {_RATE}" for at, packet in enumerate(_PACKETS)},
        **{f"lost {why}": f"lost_{at}" for at, why in enumerate(_LOSSES)},
    },
)
