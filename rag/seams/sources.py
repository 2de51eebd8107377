"""Where documents come from by themselves: what a kind of source has to be able to do."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as its source lists it, not yet read."""

    name: str  # within the source, with forward slashes; each name is listed once
    mark: str  # the source's own for this version (time and size, ETag, commit); "" has none
    size: int | None = None  # bytes, where the source says so
    url: str = ""  # where people open it; "" where that is nowhere
    is_settled: bool = True  # False while it is being written to: it is looked at again soon
    # What the source says of it, where the file itself says nothing.
    author: str = ""
    date: str = ""  # a day, "2025-03-31"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What whoever adds a source may say besides its address."""

    include: tuple[str, ...] = ()  # globs of names; none: all
    exclude: tuple[str, ...] = ()
    depth: int = 3  # of links that are followed from a page
    most_files: int = 20_000
    max_bytes: int = 64 * 1024 * 1024  # of one file
    private_hosts: tuple[str, ...] = ()  # of this network, that may be asked all the same
    aside: Path | None = None  # a folder of this source alone, for what it keeps between two syncs
    last_look: str = ""  # when one ended: what was left before it is not gone on with
    # What of the address is secret, each with its name in {}: kept and told is the name alone.
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class Connector(Protocol):
    """A folder, a share, a repository, a site: it is listed, and read file by file."""

    def listed(self) -> Iterator[ListedFile]:
        """All there is now, in any order. Raises SourceAway.

        Where it cannot be seen whole it raises, at the latest at its end: what was not listed is
        taken for removed.
        """

    def read(self, file: ListedFile) -> bytes:
        """The bytes of a file that was listed. Raises UserError, and SourceAway."""

    def close(self) -> None:
        """Let go of connections and of what was put aside."""


@runtime_checkable
class Resumable(Protocol):
    """A connector whose listing takes long: who opens it again after `keep` lists on from there."""

    def keep(self) -> None:
        """Leave what was listed so far, when it is closed, to the next who opens it."""


OpenSource = Callable[[str, SourceOptions], Connector]  # of an address; raises UserError
