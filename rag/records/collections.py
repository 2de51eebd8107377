"""Collections of documents, and what somebody may do with one."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

DEFAULT_COLLECTION = "1"  # where documents are that nobody put elsewhere
GROUP = "group:"  # before the name of a member that is a group


class Right(IntEnum):
    """Each holds those before it."""

    NONE = 0
    READ = 1
    ADD = 2  # documents, and change those that one added
    WRITE = 3  # add, change and delete any
    MANAGE = 4  # say who may what, rename, delete


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents that the same people may read."""

    id: str  # digits: the word index holds it as a word
    name: str
    owner: str  # empty: whoever runs the server
    everybody: Right = Right.NONE  # of each who is known here


@dataclass(frozen=True, slots=True)
class Readable:
    """The collections that an asker may read: everything that finds documents asks for it (C7)."""

    ids: frozenset[str] | None  # None: there is nobody from whom anything is kept

    def holds(self, collection_id: str) -> bool:
        return self.ids is None or collection_id in self.ids

    def only(self, chosen: Iterable[str]) -> "Readable":
        """Those of them that were chosen; all if none was."""
        wanted = frozenset(chosen)
        if not wanted:
            return self
        return Readable(wanted if self.ids is None else wanted & self.ids)


EVERYTHING = Readable(None)  # for whoever runs the server alone
NOTHING = Readable(frozenset())
