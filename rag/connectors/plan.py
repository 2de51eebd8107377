"""What a sync has to do, decided from what a source lists and what is known of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath

from rag.documents.archives import is_archive
from rag.records import DocumentSource, SourceFile, Standing
from rag.seams import ListedFile

GONE = frozenset({Standing.REMOVING, Standing.REMOVED})


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """Each listed and each known file is in exactly one of these."""

    new: tuple[ListedFile, ...] = ()
    changed: tuple[tuple[SourceFile, ListedFile], ...] = ()  # or touched: its content is to judge
    unchanged: tuple[tuple[SourceFile, ListedFile], ...] = ()
    removed: tuple[SourceFile, ...] = ()  # not listed any more, nor in what could not be opened
    waiting: tuple[ListedFile, ...] = ()  # are being written to
    lost: tuple[SourceFile, ...] = ()  # not listed, and their documents are gone already
    back: tuple[SourceFile, ...] = ()  # not listed, and wanted back


@dataclass(frozen=True, slots=True)
class Limits:
    """How many removals at once need no yes."""

    share: float = 0.2
    most: int = 50

    def allow(self, removed: int, known: int) -> bool:
        """One alone may go, unless it is all that there was."""
        if removed in (0, 1) and removed < known:
            return True
        return removed <= self.most and removed <= self.share * known


def refused_mark(mark: str, bounds: str) -> str:
    """Of a version that could not be read within the bounds: within others it is tried again."""
    return f"{mark} {bounds}" if mark else ""


def compare(
    listed: Iterable[ListedFile],
    known: Iterable[SourceFile],
    documents: Mapping[str, str],
    bounds: str,
) -> SyncPlan:
    """By the source's own marks; `documents` are the contents of those that are there, by id.

    `bounds` are those of a file as they are now. A document that somebody took out or replaced by
    hand is as its source has it again.
    """
    standing = [row for row in known if row.standing not in GONE]
    rows = {row.name: row for row in sorted(standing, key=_is_of_source)}  # what is listed counts
    new, changed, unchanged, waiting = [], [], [], []
    seen, met = set(), set()
    for file in listed:
        if file.name in seen:
            continue
        seen.add(file.name)
        row = rows.get(file.name)
        if row is not None and not _is_replaced(row, documents):
            met.add(row.document_id)
        else:
            row = None
        if not file.is_settled:
            waiting.append(file)
        elif row is None:
            new.append(file)
        elif _is_same(row, file, documents, bounds):
            unchanged.append((row, file))
        else:
            changed.append((row, file))
    absent = [row for row in standing if row.document_id not in met]
    back = [row for row in absent if row.standing is Standing.BACK]
    others = [row for row in absent if row.standing is not Standing.BACK]
    lost = [row for row in others if row.document_id not in documents]
    gone = [row for row in others if row.document_id in documents and _is_of_source(row)]
    closed = {name for name in seen if is_archive(name)}  # listed as files: nobody could open them
    return SyncPlan(
        tuple(new),
        tuple(changed),
        tuple(unchanged),
        tuple(row for row in gone if not closed or not _is_inside(row.name, closed)),
        tuple(waiting),
        (*lost, *(row for row in back if _is_replaced(row, documents))),
        tuple(row for row in back if not _is_replaced(row, documents)),
    )


def _is_inside(name: str, archives: Set[str]) -> bool:
    return any(str(above) in archives for above in PurePosixPath(name).parents)


def _is_of_source(row: SourceFile) -> bool:
    """Not one that was had back, which the source need not list."""
    return row.standing not in (Standing.KEPT, Standing.BACK)


def _is_replaced(row: SourceFile, documents: Mapping[str, str]) -> bool:
    """Wanted back, and somebody put another document in its place meanwhile: that one stays."""
    content = documents.get(row.document_id, row.content_hash)
    return row.standing is Standing.BACK and content != row.content_hash


def _is_same(row: SourceFile, file: ListedFile, documents: Mapping[str, str], bounds: str) -> bool:
    if row.reason:
        return bool(file.mark) and row.mark == refused_mark(file.mark, bounds)
    is_there = documents.get(row.document_id) == row.content_hash
    return bool(file.mark) and row.mark == file.mark and is_there


def free_name(
    name: str, source: DocumentSource, taken: Mapping[str, str], document_id: str = ""
) -> str:
    """The file's name; with the source's own before it where another document has that already.

    `taken` are the documents of the collection by name; one of `document_id` may keep its own.
    """
    numbered = (f"{source.name} ({n})/{name}" for n in count(2))
    for wanted in chain((name, f"{source.name}/{name}"), numbered):
        if taken.get(wanted, document_id or None) == (document_id or None):
            return wanted
    raise AssertionError("numbers do not end")


def may_have_moved(files: Sequence[ListedFile], gone: Iterable[SourceFile]) -> list[ListedFile]:
    """The new files that are worth to be read to see whether they are not new at all."""
    sizes = {(row.size, _ending(row.name)) for row in gone if row.content_hash}
    unsized = {ending for size, ending in sizes if size is None}
    endings = {ending for _size, ending in sizes}
    return [
        file
        for file in files
        if (file.size, _ending(file.name)) in sizes
        or _ending(file.name) in unsized
        or (file.size is None and _ending(file.name) in endings)
    ]


def moves(hashes: Mapping[str, str], gone: Sequence[SourceFile]) -> dict[str, SourceFile]:
    """Which of the new files, by name, are gone ones at another place: the same content and ending.

    Of several of one content, those of one name belong together, then of one file name, then of
    one folder.
    """
    left = {row.document_id: row for row in gone if row.content_hash}
    results: dict[str, SourceFile] = {}
    for likeness in LIKENESS:
        alike = defaultdict[tuple[str, str, str], list[SourceFile]](list)
        for row in sorted(left.values(), key=lambda row: row.name, reverse=True):
            alike[row.content_hash, _ending(row.name), likeness(row.name)].append(row)
        for name in sorted(hashes.keys() - results.keys()):
            rows = alike[hashes[name], _ending(name), likeness(name)]
            if rows:
                results[name] = rows.pop()
                del left[results[name].document_id]
    return results


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.casefold()


LIKENESS: tuple[Callable[[str], str], ...] = (
    lambda name: name,
    lambda name: PurePosixPath(name).name,
    lambda name: str(PurePosixPath(name).parent),
    lambda name: "",
)
