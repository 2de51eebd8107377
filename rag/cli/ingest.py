"""The work of `groundnote ingest` and `reindex`: here, or on the server that holds the index."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from rag.cli.remote import RefusedByServer, RemoteServer
from rag.cli.source import printable
from rag.cli.terminal import progress_bar
from rag.documents.files import IncomingFile, collect
from rag.documents.limits import MEBIBYTE
from rag.errors import RagError, UserError
from rag.ingestion.pipeline import stored_files
from rag.records import DEFAULT_COLLECTION, EVERYTHING
from rag.runtime.progress import Progress as FileProgress
from rag.runtime.progress import Stage
from rag.settings import Settings
from rag.wiring.listeners import running_server

if TYPE_CHECKING:
    from rag.wiring.application import Application

FILES_AHEAD = 8  # uploaded before the first of them has to be ready
POLL_SECONDS = 0.3
FILES_LISTED = 5


@dataclass(slots=True)
class IngestCounts:
    """The results of an ingest."""

    ingested: int = 0
    unchanged: int = 0
    chunks: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)

    def take(self, ended: FileProgress) -> None:
        if ended.stage is Stage.FAILED:
            self.failed.append({"document": ended.name, "reason": ended.reason})
        elif ended.stage is Stage.UNCHANGED:
            self.unchanged += 1
        else:
            self.ingested += 1
            self.chunks += ended.total


def was_ingested(settings: Settings, paths: Sequence[Path]) -> bool:
    """Return whether `ingest_paths` has completed for these paths before."""
    return _stamp(settings, paths).exists()


def ingest_paths(
    settings: Settings,
    paths: Sequence[Path],
    *,
    console: Console,
    collection: str = "",
    is_served_next: bool = False,
) -> IngestCounts:
    """Ingest files and folders with a progress bar, and report each file's end.

    With `is_served_next`, this process becomes a server, which embeds with the second model itself.
    """
    files = collect(paths)
    counts = IngestCounts()
    url = running_server(settings.data_dir)
    wanted = collection or DEFAULT_COLLECTION
    reports = _over_there(settings, url, files, wanted) if url else _here(settings, files, wanted)
    _follow(reports, counts, len(files), console)
    if url is None and not is_served_next:
        _read_for_other_languages(settings, console)
    if files:  # files may be put into an empty folder later
        stamp = _stamp(settings, paths)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    return counts


def reindex(settings: Settings, *, console: Console) -> None:
    """Rebuild the vector index; beside servers if vectors of two models can be stored."""
    from rag.wiring.application import opened

    is_beside = settings.retrieval.vectors == "postgresql"
    library = opened(settings) if is_beside else _library_without_server(settings, "reindex")
    with library as application, progress_bar(console) as bar:
        task = bar.add_task("embedding", total=None)
        for done, total in application.ingestion.reindex():
            bar.update(task, completed=done, total=total)
    console.print("The index is equal to the database again.")
    if is_beside:
        console.print("Restart servers that run with another embedding.model with this one.")


def reread(settings: Settings, *, console: Console, whole: bool = False) -> IngestCounts:
    """Read again the kept files that an older reader read; citations of them stay.

    `whole`: of every document. A file that is refused now keeps its text.
    """
    counts = IngestCounts()
    with _library_without_server(settings, "reread") as application:
        store = application.documents
        documents = store.documents(EVERYTHING) if whole else store.read_before(EVERYTHING)
        files = list(stored_files(store, documents))
        _follow(application.ingestion.ingest(files), counts, len(files), console)
    if unkept := {document.name for document in documents} - {file.name for file in files}:
        named = ", ".join(sorted(unkept)[:FILES_LISTED])
        console.print(
            f"{len(unkept)} documents have no kept file ({named}): their text stays as it is. "
            "Ingest those again."
        )
    return counts


def _follow(
    reports: Iterator[FileProgress], counts: IngestCounts, total: int, console: Console
) -> None:
    """Report how each file ends, and count the results."""
    with progress_bar(console) as bar:
        task = bar.add_task("reading", total=total)
        for report in reports:
            name = report.name if len(report.name) <= 40 else "…" + report.name[-39:]
            bar.update(task, description=escape(f"{report.stage} {printable(name)}"))
            if report.is_final:
                counts.take(report)
                bar.advance(task)
                if report.stage is Stage.FAILED:
                    reason = escape(printable(report.reason))
                    console.print(f"[red]not read[/red] {reason}", soft_wrap=True)
        bar.update(task, description="done")
    parts = [f"{counts.ingested} files ingested ({counts.chunks} chunks)"]
    if counts.unchanged:
        parts.append(f"{counts.unchanged} unchanged")
    if counts.failed:
        parts.append(f"{len(counts.failed)} not read")
    console.print(", ".join(parts) + ".")


def _read_for_other_languages(settings: Settings, console: Console) -> None:
    """Embed new chunks with the second model; what is done is kept if stopped."""
    from rag.wiring.application import opened

    with opened(settings) as application, progress_bar(console) as bar:
        done, total = application.second.progress() if application.second else (0, 0)
        if application.second is None or done == total:
            return
        console.print(
            "All can be asked for now. Reading it for other languages too "
            "(Ctrl-C leaves that to `groundnote serve`) …"
        )
        task = bar.add_task("reading for other languages", total=None)
        try:
            for done, total in application.second.make_missing():
                bar.update(task, completed=done, total=total)
        except KeyboardInterrupt:
            console.print(
                f"Stopped. All passages are found by their own language, {done:,} of {total:,} by "
                "others too; `groundnote serve` and the next ingest go on."
            )
        except RagError as error:
            console.print(escape(str(error)))


@contextmanager
def _library_without_server(settings: Settings, command: str) -> Iterator["Application"]:
    """Open the library, if no server holds its index."""
    from rag.wiring.application import opened

    if url := running_server(settings.data_dir):
        raise UserError(f"The server at {url} holds the index. Stop it, then run {command} again.")
    with opened(settings) as application:
        yield application


def _here(
    settings: Settings, files: Sequence[IncomingFile], collection: str
) -> Iterator[FileProgress]:
    from rag.wiring.application import opened

    with opened(settings) as application:
        place = application.collections.find("", collection).id
        application.ingestion.synchronise()
        placed = [replace(file, collection_id=place) for file in files]
        for report in application.ingestion.ingest(placed):
            if report.stage is Stage.FAILED:
                application.jobs.note_unread(report.name, report.reason, place)
            yield report


def _over_there(
    settings: Settings, url: str, files: Sequence[IncomingFile], collection: str
) -> Iterator[FileProgress]:
    """Upload files to a server, some ahead of the one that it waits for.

    Yield the reports that `Ingestion.ingest` would give.
    """
    max_bytes = int(settings.documents.max_file_mb * MEBIBYTE)
    jobs: dict[str, str] = {}  # id → name
    with closing(RemoteServer(url)) as server:
        hashes = server.content_hashes(collection)
        for file in files:
            try:
                content = file.read(max_bytes)
                if hashlib.sha256(content).hexdigest() == hashes.get(file.name):
                    yield FileProgress(file.name, Stage.UNCHANGED)
                    continue
                job_id = server.upload(file.name, content, collection)
            except (UserError, RefusedByServer) as error:
                yield FileProgress(file.name, Stage.FAILED, reason=str(error))
                continue
            jobs[job_id] = file.name
            yield FileProgress(file.name, Stage.READING)
            yield from _ended(server, jobs, at_most=FILES_AHEAD)
        yield from _ended(server, jobs, at_most=0)


def _ended(server: RemoteServer, jobs: dict[str, str], *, at_most: int) -> Iterator[FileProgress]:
    """Wait until at most `at_most` jobs are left; yield their reports."""
    stages = {"done": Stage.FINISHED, "failed": Stage.FAILED, "running": Stage.EMBEDDING}
    while len(jobs) > at_most:
        for job_id, job in server.jobs(jobs).items():
            stage, reason = stages.get(job["state"], Stage.READING), job["error"] or ""
            report = FileProgress(jobs[job_id], stage, job["done"], job["total"], reason=reason)
            yield report
            if report.is_final:
                del jobs[job_id]
        if len(jobs) > at_most:
            time.sleep(POLL_SECONDS)


def _stamp(settings: Settings, paths: Sequence[Path]) -> Path:
    places = "\n".join(sorted(str(path.resolve()) for path in paths))
    digest = hashlib.sha256(places.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return settings.data_dir / "ingested" / digest
