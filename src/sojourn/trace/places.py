"""Where traces are: folders of this machine, or addresses such as s3://bucket/traces that pyarrow can read.

`place` turns what a user names into a `Path` or, for an address, into a `RemotePath`, which has the few
methods of `Path` that readers of traces use. An address is a text that can be sent to tasks and opened there:
what the filesystem needs to know stands in it, as pyarrow reads it
(s3://bucket/traces?region=eu-west-1&endpoint_override=127.0.0.1:9000&scheme=http), and keys come from
the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), since addresses end up in logs. Hadoop's (hdfs://)
works where its libraries are installed. Nothing is written to an address here.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from sojourn.errors import SojournError

LOCAL = ("", "localhost")


class PlaceError(SojournError):
    """An address means nothing here, or cannot be reached."""


class Size(NamedTuple):
    """What `Path.stat` tells, as far as readers ask."""

    st_size: int


class RemotePath:
    """A folder or file at an address."""

    __slots__ = ("_at", "_files", "_query", "_text")

    def __init__(self, files: fs.FileSystem, at: str, text: str, query: str) -> None:
        self._files = files
        self._at = at
        """Where it is in the filesystem."""
        self._text = text
        """The address without what the filesystem needs to know."""
        self._query = query

    @classmethod
    def of(cls, address: str) -> RemotePath:
        """Return the folder or file at an address."""
        parts = urlsplit(address)
        if "@" in parts.netloc:
            raise PlaceError(
                "An address with keys in it ends up in logs: leave them out, and set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY."
            )
        try:
            files, at = fs.FileSystem.from_uri(address)
        except (pa.ArrowException, OSError, ImportError, ValueError) as error:
            raise PlaceError(f"{parts.scheme}:// cannot be used here ({_first_line(error)}).") from None
        return cls(files, at.rstrip("/"), address.partition("?")[0].rstrip("/"), parts.query)

    def __str__(self) -> str:
        return f"{self._text}?{self._query}" if self._query else self._text

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(self._files, f"{self._at}/{name}", f"{self._text}/{name}", self._query)

    def __lt__(self, other: RemotePath) -> bool:
        return self._at < other._at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def name(self) -> str:
        """The last part."""
        return self._at.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The last part without its ending."""
        return Path(self.name).stem

    @property
    def parent(self) -> RemotePath:
        """The folder that it is in."""
        above, text = self._at.rpartition("/")[0], self._text.rpartition("/")[0]
        return RemotePath(self._files, above, text, self._query)

    def absolute(self) -> RemotePath:
        """The same: an address means the same everywhere."""
        return self

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return bool(self._info().type == fs.FileType.Directory)

    def exists(self) -> bool:
        """Whether there is anything."""
        return bool(self._info().type != fs.FileType.NotFound)

    def is_file(self) -> bool:
        """Whether it is a file."""
        return bool(self._info().type == fs.FileType.File)

    def stat(self) -> Size:
        """How large it is."""
        return Size(int(self._info().size or 0))

    def read_text(self) -> str:
        """What a file holds."""
        with self.open() as file:
            return bytes(file.read()).decode()

    def open(self) -> Any:
        """Return the file, to be read at any place."""
        try:
            return self._files.open_input_file(self._at)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise self._unreachable(error) from None

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """What there is below, of as many parts as the pattern has."""
        wanted = pattern.split("/")
        for info in self._below():
            parts = info.path.removeprefix(self._at).strip("/").split("/")
            if len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted)):
                found = self
                for part in parts:
                    found /= part
                yield found

    def _below(self) -> list[fs.FileInfo]:
        try:
            return list(
                self._files.get_file_info(fs.FileSelector(self._at, recursive=True, allow_not_found=True))
            )
        except (pa.ArrowException, OSError) as error:
            raise self._unreachable(error) from None

    def _info(self) -> fs.FileInfo:
        try:
            return self._files.get_file_info(self._at)
        except (pa.ArrowException, OSError) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> PlaceError:
        return PlaceError(
            f"{self._text} cannot be read ({_first_line(error)}): check the address, the keys in the "
            "environment and whether it can be reached from here."
        )


Place = Path | RemotePath


def place(named: str | Place) -> Place:
    """Return what a user names: a folder or file of this machine, or an address."""
    if not isinstance(named, str):
        return named
    scheme, colon, _ = named.partition("://")
    if not colon:
        return Path(named)
    if scheme != "file":
        return RemotePath.of(named)
    parts = urlsplit(named)
    if parts.netloc not in LOCAL:
        raise PlaceError(f"{named} is on {parts.netloc}: an address of a file here is file:///folder.")
    return Path(unquote(parts.path))


def local(named: str | Place, what: str) -> Path:
    """Return a folder or file of this machine; refuse an address, with what cannot use one."""
    found = place(named)
    if isinstance(found, RemotePath):
        raise PlaceError(f"{what} needs a folder of this machine, not {found}: copy it, or mount it.")
    return found


def below(folder: Place, pattern: str) -> list[Place]:
    """Return what there is in a folder, in order."""
    found: list[Place] = list(folder.glob(pattern))
    return sorted(found, key=str)


def parquet_file(where: str | Place, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file, wherever it is."""
    found = place(where)
    if isinstance(found, RemotePath):
        return pq.ParquetFile(found.open(), **options)
    return pq.ParquetFile(found, **options)


def _first_line(error: Exception) -> str:
    """The part of an error that is worth a sentence; some list every place where a library was not found."""
    lines = str(error).strip().splitlines()
    return lines[0][:200].rstrip(".") if lines else type(error).__name__
