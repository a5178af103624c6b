"""Who is on the segment: a multicast group, or a list of addresses.

    segment = Segment.parse("239.255.18.3:7018")
    segment = Segment.parse("neighbours.txt")

With a group nobody needs to know anybody: what is said to it reaches every device that has joined it, on
loopback too. A list is for networks that carry no multicast, as many with access points do not; it is a file
with an address of a device a line (`HOST:PORT`, its `listen`), and is read anew when it has changed. With a
list only those in it are heard, so that a test can part a network and join it again.
"""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

from sojourn.errors import SojournError
from sojourn.live.config import Address, ConfigError, parse_address

FILE_BYTES_MAX = 1 << 20


class SegmentError(SojournError):
    """A segment cannot be what was given."""


class Segment:
    """Where to say something to all, and whom to hear."""

    def __init__(self, *, group: Address | None = None, path: Path | None = None) -> None:
        self.group = group
        self._path = path
        self._read_at = (0, -1)
        self._listed: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Segment:
        """Take a multicast group as `HOST:PORT`, or the path of a list."""
        path = Path(text)
        if path.exists():
            return cls(path=path)
        try:
            group = parse_address(text, "segment")
            is_group = ipaddress.ip_address(group.host).is_multicast
        except (ConfigError, ValueError):
            is_group = False
        if not is_group:
            raise SegmentError(
                f"{text!r} is neither a multicast group such as 239.255.18.3:7018 nor a file with an address "
                "a line; give one of them as the segment."
            )
        return cls(group=group)

    def targets(self) -> list[tuple[str, int]]:
        """Where a datagram for everybody goes."""
        if self.group is not None:
            return [(self.group.host, self.group.port)]
        return sorted(self._list())

    def hears(self, host: str, port: int) -> bool:
        """Whether what comes from there counts."""
        return self.group is not None or (host, port) in self._list()

    def _list(self) -> frozenset[tuple[str, int]]:
        assert self._path is not None
        try:
            stat = self._path.stat()
            if (stat.st_mtime_ns, stat.st_size) != self._read_at:
                with self._path.open() as file:
                    text = file.read(FILE_BYTES_MAX)
                self._listed = frozenset(_address(line) for line in text.split() if line)
                self._read_at = stat.st_mtime_ns, stat.st_size
        except (OSError, ConfigError):
            pass  # it is being written: what was read last holds
        return self._listed


def _address(text: str) -> tuple[str, int]:
    address = parse_address(text, "segment")
    return address.host, address.port


def join(group: Address, interface: str) -> socket.socket:
    """A socket that hears a group; several processes of a machine may."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((group.host, group.port))
        member = socket.inet_aton(group.host) + socket.inet_aton(interface)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        sock.setblocking(False)  # noqa: FBT003 - so it is called
    except OSError as error:
        sock.close()
        raise SegmentError(
            f"The group {group} cannot be joined on {interface}: {error.strerror}; give another interface by "
            "--listen, or a list of addresses as the segment."
        ) from None
    return sock
