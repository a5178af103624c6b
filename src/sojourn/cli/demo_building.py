"""The configuration of the demonstration: the six-broker building on whatever ports are free."""

from __future__ import annotations

from typing import NamedTuple

from sojourn.live.links.secret import SECRET_NAME
from sojourn.live.templates import TEMPLATES

ANY_PORT = "127.0.0.1:0"


class DemoBuilding(NamedTuple):
    """A configuration file and the brokers that it names; the first has the page.

    The secret that it names is to be beside it.
    """

    text: str
    names: list[str]


def demo_building(scheme: str, trace_folder: str, run: str) -> DemoBuilding:
    """Write the configuration of one run."""
    template = TEMPLATES["building"]
    names = [f"B{number + 1}" for number in range(template.brokers)]
    links = ", ".join(f'["B{one}", "B{other}"]' for one, other in template.links)
    lines = [f"links = [{links}]", "", "[mobility]", f'subscribers = "{scheme}"', ""]
    lines += ["[network]", f'secret = "{SECRET_NAME}"', ""]
    lines += ["[trace]", f"folder = {trace_folder!r}", f'run = "{run}"', ""]
    for name in names:
        lines += ["[[brokers]]", f'name = "{name}"', f'listen = "{ANY_PORT}"', f'peers = "{ANY_PORT}"', ""]
        if name == names[0]:
            lines.insert(-1, f'page = "{ANY_PORT}"')
    return DemoBuilding("\n".join(lines), names)
