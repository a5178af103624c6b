"""The configuration of the demonstration: the six-broker building on ports that are free."""

from __future__ import annotations

import socket
from typing import NamedTuple

from sojourn.live.templates import TEMPLATES


class DemoBuilding(NamedTuple):
    """A configuration file and what it says."""

    text: str
    names: list[str]
    urls: list[str]
    page: str
    """Where the page is, HOST:PORT."""


def demo_building(scheme: str, trace_folder: str, run: str) -> DemoBuilding:
    """Write the configuration of one run."""
    template = TEMPLATES["building"]
    count = template.brokers
    ports = _free_ports(2 * count + 1)
    names = [f"B{number + 1}" for number in range(count)]
    links = ", ".join(f'["B{one}", "B{other}"]' for one, other in template.links)
    page = f"127.0.0.1:{ports[-1]}"
    lines = [f"links = [{links}]", "", "[mobility]", f'subscribers = "{scheme}"', ""]
    lines += ["[trace]", f"folder = {trace_folder!r}", f'run = "{run}"', ""]
    for number, name in enumerate(names):
        lines += ["[[brokers]]", f'name = "{name}"', f'listen = "127.0.0.1:{ports[number]}"']
        lines += [f'peers = "127.0.0.1:{ports[count + number]}"', ""]
        if number == 0:
            lines.insert(-1, f'page = "{page}"')
    urls = [f"mqtt://127.0.0.1:{port}" for port in ports[:count]]
    return DemoBuilding("\n".join(lines), names, urls, page)


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
