"""The commands `groundnote backup`, `restore`, `resume`, `originals` and `migrate`."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag.cli.source import as_json_option, printable

if TYPE_CHECKING:
    from rag.operations.repository import BackupManifest
    from rag.settings import Settings


@click.command()
@click.argument("target")
@click.option("--keep", type=click.IntRange(1), help="Then keep so many backups there; else all.")
@click.option("--check", "checks", is_flag=True, help="Make none: read those that are there.")
@as_json_option
@click.pass_obj
def backup(
    settings: "Settings", target: str, keep: int | None, checks: bool, as_json: bool
) -> None:
    """Keep the whole library, also while it is in use.

    TARGET is a folder or a URL, where only what is new is written, or an archive, FILE.zip.
    """
    from rag.db.audit_trail import AuditTrail
    from rag.operations.backup import back_up
    from rag.operations.repository import opened_for_backup
    from rag.wiring.stores import library_of, open_database

    if checks:
        _check(target)
        return
    engine = open_database(settings)
    with opened_for_backup(target) as repository, _progress() as report:
        manifest = back_up(library_of(settings, engine), repository, report=report)
        AuditTrail(engine).add("library.backed_up", f"{manifest.id} in {repository.place}")
        gone = repository.keep(keep) if keep is not None else 0
    _show_manifest(manifest, f"Backup {manifest.id} in {target}", as_json)
    if gone and not as_json:
        click.echo(f"{gone} older backups were removed.")
    if manifest.missing:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("source")
@click.option("--backup", "backup_id", default="", help="Which one; without, the newest.")
@as_json_option
@click.pass_obj
def restore(settings: "Settings", source: str, backup_id: str, as_json: bool) -> None:
    """Put a backup back, into an empty data folder and an empty database.

    Uploads that waited and syncs wait for `groundnote resume`.
    """
    from rag.errors import Conflict
    from rag.llm.discovery import SECRET_FILE, SECRET_VARIABLE
    from rag.operations.backup import restore as put_back
    from rag.operations.repository import opened_for_restore
    from rag.wiring.components import open_chroma, open_embedder
    from rag.wiring.stores import empty_library

    if settings.retrieval.chroma_url is not None:
        with closing(open_chroma(settings, open_embedder(settings))) as index:
            count = index.count()
        if count:
            raise Conflict(
                f"The vector index at retrieval.chroma_url holds {count} vectors. Name another "
                "retrieval.chroma_collection: vectors are made again from the restored documents."
            )
    with opened_for_restore(source) as repository, _progress() as report:
        manifest = repository.manifest(backup_id)
        put_back(repository, manifest, empty_library(settings), report=report)
    _show_manifest(manifest, f"Backup {manifest.id} is in {settings.data_dir}", as_json)
    if as_json:
        return
    click.echo(
        "The vector index is made again by the next `groundnote serve`, about 13 seconds of "
        "processor time for 1,000 passages; words find them meanwhile."
    )
    click.echo("What waited and all syncs go on after `groundnote resume`.")
    if not (settings.data_dir / SECRET_FILE).exists() and SECRET_VARIABLE not in os.environ:
        click.echo(
            f"No backup holds {SECRET_FILE}: passwords of sources and the key of a connected model "
            f"are asked for anew, unless you copy it into {settings.data_dir} before the start."
        )
    if manifest.secrets:
        click.echo(f"Set again, as secrets are in no backup: {', '.join(manifest.secrets)}.")


@click.command()
@click.pass_obj
def resume(settings: "Settings") -> None:
    """After a restore: let syncs and the uploads that waited go on."""
    from rag.db.blobs import release_jobs
    from rag.wiring.stores import open_database

    waited = release_jobs(open_database(settings))
    click.echo("They go on." if waited else "Nothing waited for that.")


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.pass_obj
def originals(settings: "Settings", folders: tuple[Path, ...]) -> None:
    """Copy the files of documents into documents.originals_url.

    They are looked for in `originals` of the data folder and in each of FOLDERS, such as the data
    folder of another service.
    """
    from rag.db.audit_trail import AuditTrail
    from rag.db.blobs import FolderBlobs
    from rag.documents.store import SqlDocumentStore
    from rag.wiring.components import local_originals, open_originals
    from rag.wiring.stores import open_database

    engine = open_database(settings)
    documents = SqlDocumentStore(engine, open_originals(settings))
    places = [local_originals(settings)]
    for folder in folders:
        inner = folder / "originals"
        places.append(FolderBlobs(inner if inner.is_dir() else folder))
    brought = sum(documents.bring_originals(place) for place in places)
    AuditTrail(engine).add("originals.copied", f"{brought} files")
    lacking = documents.without_original()
    click.echo(f"{brought} files were copied; {len(lacking)} documents have none.")
    for name in sorted(lacking.values()):
        click.echo(printable(f"no file: {name}"))
    if lacking:
        raise click.exceptions.Exit(1)


@click.command()
@click.option("--without-backup", is_flag=True, help="Where there is no room for one.")
@click.pass_obj
def migrate(settings: "Settings", without_backup: bool) -> None:
    """Bring the database to this version; any start does so, after a backup."""
    from rag.wiring.stores import open_database

    open_database(settings, backs_up=not without_backup).dispose()
    click.echo("The database is of this version.")


def _check(target: str) -> None:
    """Read every backup there. Exits with 1 if one is not complete."""
    from rag.errors import RagError
    from rag.operations.repository import opened_for_restore

    is_whole = True
    with opened_for_restore(target) as repository:
        ids = repository.ids()
        for backup_id in ids:
            try:
                manifest = repository.manifest(backup_id)
                lacking = repository.lacking(manifest, reads=True)
                fault = f"{len(lacking)} files: {', '.join(lacking[:5])}" if lacking else ""
            except RagError as error:
                fault = str(error)
            click.echo(f"{'not whole' if fault else 'whole    '} {backup_id} {fault}".rstrip())
            is_whole = is_whole and not fault
    if not ids:
        click.echo(f"{target} holds no whole backup.")
    if not ids or not is_whole:
        raise click.exceptions.Exit(1)


def _show_manifest(manifest: "BackupManifest", what: str, as_json: bool) -> None:
    counts = manifest.counts
    if as_json:
        values = asdict(manifest)
        left_out = ("settings", "files", "database")
        shown = {key: value for key, value in values.items() if key not in left_out}
        click.echo(json.dumps(shown | {"bytes": manifest.size}, ensure_ascii=False))
        return
    click.echo(
        f"{what}: {counts['documents']} documents, {counts['tables']} tables, "
        f"{counts['conversations']} conversations; {manifest.size / 2**20:,.1f} MiB."
    )
    for name, documents in manifest.missing.items():
        names = printable(", ".join(documents[:5]))
        click.echo(f"not in it, as it is gone: {name} ({names})")


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console

    from rag.cli.terminal import progress_bar

    with progress_bar(Console(stderr=True)) as bar:
        task = bar.add_task("files", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
