"""`groundnote ingest` and `reindex`: here, or through the server that holds the index."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rag.documents.files import IncomingFile, collect
from rag.documents.limits import MEBIBYTE
from rag.errors import UserError
from rag.ingestion import Progress as FileProgress
from rag.ingestion import Stage
from rag.remote import RemoteServer, upload_all
from rag.settings import Settings


@dataclass(slots=True)
class Counts:
    """How an ingest ended, file by file."""

    ingested: int = 0
    unchanged: int = 0
    chunks: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "ingested": self.ingested,
            "unchanged": self.unchanged,
            "chunks": self.chunks,
            "failed": self.failed,
        }

    def take(self, ended: FileProgress) -> None:
        if ended.stage is Stage.FAILED:
            self.failed.append({"document": ended.name, "reason": ended.reason})
        elif ended.stage is Stage.UNCHANGED:
            self.unchanged += 1
        else:
            self.ingested += 1
            self.chunks += ended.total


def was_ingested(settings: Settings, paths: Sequence[Path]) -> bool:
    """Whether `ingest_paths` has come to its end for these paths before."""
    return _stamp(settings, paths).exists()


def ingest_paths(settings: Settings, paths: Sequence[Path], *, console: Console) -> Counts:
    """Ingest files and folders with a progress bar, and tell how each file ended."""
    from rag.web.server import running_server

    files = collect(paths)
    counts = Counts()
    url = running_server(settings.data_dir)
    reports = _over_there(settings, url, files) if url else _here(settings, files)
    with _bar(console) as bar:
        task = bar.add_task("reading", total=len(files))
        for report in reports:
            bar.update(task, description=escape(f"{report.stage} {_short(report.name)}"))
            if report.is_final:
                counts.take(report)
                bar.advance(task)
                if report.stage is Stage.FAILED:
                    console.print(f"[red]not read[/red] {escape(report.reason)}", soft_wrap=True)
        bar.update(task, description="done")
    _tell(counts, console)
    stamp = _stamp(settings, paths)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    return counts


def reindex(settings: Settings, *, console: Console) -> None:
    """Build the vector index anew."""
    from rag.web.server import opened, running_server

    url = running_server(settings.data_dir)
    if url is not None:
        raise UserError(f"The server at {url} holds the index. Stop it, then run reindex again.")
    with opened(settings) as application, _bar(console) as bar:
        task = bar.add_task("embedding", total=None)
        for done, total in application.ingestion.reindex():
            bar.update(task, completed=done, total=total)
    console.print("The index is equal to the database again.")


def _here(settings: Settings, files: Sequence[IncomingFile]) -> Iterator[FileProgress]:
    from rag.web.server import opened

    with opened(settings) as application:
        application.ingestion.synchronise()
        yield from application.ingestion.ingest(files)


def _over_there(
    settings: Settings, url: str, files: Sequence[IncomingFile]
) -> Iterator[FileProgress]:
    server = RemoteServer(url)
    max_bytes = int(settings.documents.max_file_mb * MEBIBYTE)
    try:
        for file in files:
            try:
                content = file.read(max_bytes)
            except UserError as error:
                yield FileProgress(file.name, Stage.FAILED, reason=str(error))
                continue
            for name, reason in upload_all(server, [(file.name, content)]):
                stage = Stage.FAILED if reason else Stage.FINISHED
                yield FileProgress(name, stage, reason=reason or "")
    finally:
        server.close()


def _bar(console: Console) -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(
        TextColumn("{task.description}"),
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _tell(counts: Counts, console: Console) -> None:
    parts = [f"{counts.ingested} files ingested ({counts.chunks} chunks)"]
    if counts.unchanged:
        parts.append(f"{counts.unchanged} unchanged")
    if counts.failed:
        parts.append(f"{len(counts.failed)} not read")
    console.print(", ".join(parts) + ".")


def _short(name: str) -> str:
    return name if len(name) <= 40 else "…" + name[-39:]


def _stamp(settings: Settings, paths: Sequence[Path]) -> Path:
    places = "\n".join(sorted(str(path.resolve()) for path in paths))
    digest = hashlib.sha256(places.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return settings.data_dir / "ingested" / digest
