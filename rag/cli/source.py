"""The commands `groundnote source`, for the sources of documents of collections.

Requests are written into the database; a running server carries them out, else this process.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from rag.errors import NotFound, UserError

if TYPE_CHECKING:
    from rag.connectors.registry import SourceRegistry, SourceStatus
    from rag.settings import Settings
    from rag.wiring.application import Application

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
POLL_SECONDS = 0.3
FILES_LISTED = 5  # files, of each kind
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
globs = {"multiple": True, "metavar": "GLOB"}


@click.group()
def source() -> None:
    """Keep collections in step with folders, shares, repositories and sites."""


def _seconds_of_interval(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> int | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,9})\s*([smhdw]?)", value.strip().lower())
    if not match:
        raise click.BadParameter(f"{value!r} is no time. Write such as 30m, 1h or 1d.")
    return int(match[1]) * SECONDS[match[2]]


@source.command()
@click.argument("address")
@click.option("--collection", default="", help="Where to, by name or id.")
@click.option(
    "--every", callback=_seconds_of_interval, help="How often it is looked at: 30m, 1h, 1d."
)
@click.option("--watch", is_flag=True, help="Look at each change of a folder when it happens.")
@click.option("--include", help="Only these files; may be given again.", **globs)  # type: ignore[arg-type]
@click.option("--exclude", help="Not these; may be given again.", **globs)  # type: ignore[arg-type]
@click.option("--depth", default=3, help="Of links that are followed from a page.")
@as_json_option
@click.pass_obj
def add(  # noqa: PLR0913  (what is said of a source)
    settings: "Settings",
    address: str,
    collection: str,
    every: int | None,
    watch: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    depth: int,
    as_json: bool,
) -> None:
    """Keep a collection in step with a folder or an address, from now on."""
    from rag.connectors.kinds import FOLDER, folder_of, kind_of
    from rag.records import DEFAULT_COLLECTION, DocumentSource

    if kind_of(address) == FOLDER and not folder_of(address).is_dir():
        raise UserError(f"There is no folder {folder_of(address)}. Check the path.")
    with _working(settings) as (application, book):
        place = application.collections.find("", collection or DEFAULT_COLLECTION).id
        wish = DocumentSource("", address, "", "", place, "", include, exclude, depth, every, watch)
        made = book.add(replace(wish, is_operators=True))
        _wait_for_syncs(settings, application, made.id, as_json=as_json, is_new=True)


@source.command("list")
@as_json_option
@click.pass_obj
def list_sources(settings: "Settings", as_json: bool) -> None:
    """List sources, and how they stand."""
    with _working(settings) as (_application, book):
        statuses = book.statuses(book.table.sources())
    _show_statuses(statuses, as_json=as_json)


@source.command()
@click.argument("names", nargs=-1, metavar="[ID OR ADDRESS]...")
@click.option("--thorough", is_flag=True, help="Read every file, whatever its time and size say.")
@as_json_option
@click.pass_obj
def sync(settings: "Settings", names: tuple[str, ...], thorough: bool, as_json: bool) -> None:
    """Look at some sources now, or at all."""
    with _working(settings) as (application, book):
        every = [source.id for source in book.table.sources()]
        wanted = [_source_id(book, name) for name in names] or every
        for source_id in wanted:
            book.sync(source_id, thorough=thorough)
        _wait_for_syncs(settings, application, *wanted, as_json=as_json)


def _command(act: str, says: str) -> None:
    """Add a command that calls one method for one source."""

    @source.command(act, help=says)
    @click.argument("name", metavar="ID OR ADDRESS")
    @as_json_option
    @click.pass_obj
    def do(settings: "Settings", name: str, as_json: bool) -> None:
        _act_on_source(settings, name, act, as_json=as_json)


_command("confirm", "Say yes to the removals that wait for it.")
_command("decline", "Say no to the removals that wait: those documents stay until you delete them.")
_command("undo", "Have back the documents that were removed last.")


@source.command()
@click.argument("name", metavar="ID OR ADDRESS")
@click.option("--keep-documents", is_flag=True, help="Leave what was read in the library.")
@as_json_option
@click.pass_obj
def remove(settings: "Settings", name: str, keep_documents: bool, as_json: bool) -> None:
    """Take a source away, with its documents."""
    _act_on_source(settings, name, "remove", as_json=as_json, keep_documents=keep_documents)


# ── Doing it ─────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _working(settings: "Settings") -> Iterator[tuple["Application", "SourceRegistry"]]:
    from rag.wiring.application import opened

    with opened(settings) as application:
        yield application, application.sources


def _act_on_source(
    settings: "Settings", name: str, act: str, *, as_json: bool, **how: bool
) -> None:
    """Call a method of the registry for one source, wait for the sync, and show the result."""
    with _working(settings) as (application, book):
        source_id = _source_id(book, name)
        getattr(book, act)(source_id, **how)
        _wait_for_syncs(settings, application, source_id, as_json=as_json)


def _source_id(book: "SourceRegistry", name: str) -> str:
    """Raises NotFound and UserError."""
    from rag.connectors.kinds import normalised_address

    sources = book.table.sources()
    matches = [source for source in sources if source.id == name]
    matches = matches or [
        source for source in sources if source.address == normalised_address(name)
    ]
    if len(matches) > 1:
        ids = ", ".join(entry.id for entry in matches)
        raise UserError(f"{name} is a source of several collections. Name one of {ids}.")
    if not matches:
        raise NotFound(f"There is no source {name!r}. `groundnote source list` names them.")
    return matches[0].id


def _wait_for_syncs(
    settings: "Settings",
    application: "Application",
    *source_ids: str,
    as_json: bool,
    is_new: bool = False,
) -> None:
    """Wait until the syncs have ended, and show them; exits with 1 if something failed."""
    from rag.wiring.listeners import running_server

    server = running_server(settings.data_dir)
    if server is None:
        application.jobs.start(application.load)
    results = [
        _ended(settings, application, source_id, server=server, is_new=is_new)
        for source_id in source_ids
    ]
    ended = [status for status in results if status is not None]
    _show_statuses(ended, as_json=as_json)
    if not all(one.state == "idle" and not one.source.counts.failed for one in ended):
        raise click.exceptions.Exit(1)


def _ended(
    settings: "Settings",
    application: "Application",
    source_id: str,
    *,
    server: str | None,
    is_new: bool,
) -> "SourceStatus | None":
    """Return the status after the sync; None once the source is removed."""
    from rag.records import SyncState
    from rag.wiring.listeners import running_server

    shown = ""
    while True:
        try:
            status = application.sources.statuses([application.sources.table.source(source_id)])[0]
        except NotFound:
            return None
        if status.state not in (SyncState.RUNNING, SyncState.REMOVING):
            return status
        if is_new and status.source.last_synced_at is not None:  # a following sync is another one
            return replace(status, state=status.source.state, reason=status.source.reason)
        if server is not None and running_server(settings.data_dir) is None:
            raise UserError("The server has stopped; it goes on with this when it starts again.")
        files = f"{status.done:,} of {status.total:,} files" if status.total else "looking"
        news = status.reason or files
        if news != shown:
            click.echo(f"{status.source.name}: {news}", err=True)
            shown = news
        time.sleep(POLL_SECONDS)


# ── Words ────────────────────────────────────────────────────────────────────────────────────


def printable(text: str) -> str:
    """Return foreign text without control characters of a terminal."""
    return "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)


def _show_statuses(statuses: "Sequence[SourceStatus]", *, as_json: bool) -> None:
    """Show the statuses; as JSON in the shape of the API."""
    if as_json:
        from rag.web.api.sources import describe_source

        shown = [describe_source(status).as_json() for status in statuses]
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    for status in statuses:
        click.echo(printable("\n".join(_lines(status))))


def _in_words(seconds: int) -> str:
    """Return an interval as it is typed: 90m, 2h, 1d."""
    unit = next(unit for unit in "wdhms" if seconds % SECONDS[unit] == 0)
    return f"{seconds // SECONDS[unit]}{unit}"


def _lines(status: "SourceStatus") -> Iterator[str]:
    from rag.connectors.kinds import masked

    entry = status.source
    counts = [f"{count:,} {word}" for word, count in asdict(entry.counts).items() if count]
    state = status.state.replace("_", " ")
    yield f"{entry.id}  {state:<15}  {masked(entry.address)}  {', '.join(counts)}".rstrip()
    synced_at = entry.last_synced_at and entry.last_synced_at.astimezone()
    last = f"seen whole {synced_at:%Y-%m-%d %H:%M}" if synced_at else "not seen whole yet"
    every = f"every {_in_words(entry.every_seconds)}" if entry.every_seconds else "when you say so"
    yield f"    {last}; looked at {'at each change and ' if entry.watch else ''}{every}"
    if status.reason:
        yield f"    {status.reason}"
    if status.pending_count:
        more = " …" if status.pending_count > FILES_LISTED else ""
        yield f"    Not there any more: {', '.join(status.pending[:FILES_LISTED])}{more}"
        yield f"    Say yes or no: groundnote source confirm {entry.id}, or decline"
    for file in status.failures[:FILES_LISTED]:
        yield f"    {file.reason}"
    if status.undo_count:
        what = f"{status.undo_count:,} removed documents can be had back"
        yield f"    {what}: groundnote source undo {entry.id}"
