"""The command line: parse arguments, call the library, present results."""

import gc
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag.cli.backup import backup, migrate, originals, restore, resume
from rag.cli.models import models
from rag.cli.source import as_json_option, printable, source
from rag.cli.testing import evaluate, keep, regress
from rag.errors import RagError
from rag.runtime.error_log import ERRORS

if TYPE_CHECKING:  # loaded by the commands that need them
    from rich.console import Console

    from rag.documents.collections import Collections
    from rag.settings import Settings

LOADING = (100_000, 20, 20)  # new objects; hardly any object loaded at the start is garbage
OF_CLICK = (click.ClickException, click.exceptions.Exit, click.Abort)
collection_option = click.option(
    "--collection", "collections", multiple=True, help="Ask only this one; may be given again."
)


class Commands(click.Group):
    """The outermost group: shows an error as one message without traceback, with status 1."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        with ERRORS.watching():
            return super().main(*arguments, **options)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except RagError as error:
            raise click.ClickException(str(error)) from error
        except (*OF_CLICK, BrokenPipeError):
            raise
        except Exception as error:
            raise click.ClickException(ERRORS.report(error)) from error


@click.group(cls=Commands)
@click.option("--settings", "named", type=click.Path(), help="Another settings.json.")
@click.version_option(package_name="groundnote")
@click.pass_context
def main(context: click.Context, named: str | None) -> None:
    """Answers from your own documents, each statement with a numbered citation."""
    gc.set_threshold(*LOADING)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # Looking for plugins would read the metadata of each installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    os.umask(0o077)  # the files hold private documents and sessions
    from rag.settings import load_settings

    context.obj = load_settings(named)
    ERRORS.folder = context.obj.data_dir


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Do nothing if these paths were ingested before.")
@click.option("--collection", default="", help="Where to, by name or id.")
@as_json_option
@click.pass_obj
def ingest(
    settings: "Settings", paths: tuple[Path, ...], once: bool, collection: str, as_json: bool
) -> None:
    """Add files and folders to the library; unchanged files cost nothing."""
    from rag.cli.ingest import ingest_paths, was_ingested

    console = _console(stderr=as_json)
    if once and was_ingested(settings, paths):
        console.print("These were read before; nothing was done.")
        return
    counts = ingest_paths(settings, paths, console=console, collection=collection)
    if as_json:
        click.echo(json.dumps(asdict(counts), ensure_ascii=False))
    if counts.failed:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("question")
@click.option("--session", "session_id", help="Go on with this session.")
@collection_option
@as_json_option
@click.pass_obj
def ask(
    settings: "Settings",
    question: str,
    session_id: str | None,
    collections: tuple[str, ...],
    as_json: bool,
) -> None:
    """Answer one question."""
    from rag.cli import terminal
    from rag.cli.remote import asking_with

    with asking_with(settings, session_id, collections) as (asking, _):
        events = asking(question)
        if not as_json:
            terminal.show(events, _console())
            return
        finished = terminal.show(events, _console(quiet=True))
        click.echo(json.dumps(finished, ensure_ascii=False))


@main.command()
@click.option("--session", "session_id", help="Go on with this session.")
@collection_option
@click.pass_obj
def chat(settings: "Settings", session_id: str | None, collections: tuple[str, ...]) -> None:
    """Ask one question after the other; an empty line or Ctrl-D ends it, /keep keeps a test."""
    from rag.cli import terminal
    from rag.cli.remote import asking_with

    console = _console()
    with asking_with(settings, session_id, collections) as (asking, used_id):
        console.print(f"[dim]Session {used_id}. An empty line ends it.[/dim]")
        while question := _prompt():
            try:
                if question.split()[0] == "/keep":
                    console.print(f"Kept as {keep(settings, used_id, question[5:].strip())}.")
                    continue
                terminal.show(asking(question), console)
            except RagError as error:
                console.print(str(error), style="red", markup=False, highlight=False)


def _prompt() -> str:
    try:
        return input("\n> ").strip()
    except (EOFError, KeyboardInterrupt):
        return ""


@main.command()
@click.option("--host", help="Listen here instead of web.host.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen here instead of web.port.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes, instead of web.workers.")
@click.pass_obj
def serve(settings: "Settings", host: str | None, port: int | None, workers: int | None) -> None:
    """Serve the page and the APIs."""
    from rag.web.server import serve as serve_web

    overrides = (("host", host), ("port", port), ("workers", workers))
    changes = {key: value for key, value in overrides if value is not None}
    web = settings.web.model_copy(update=changes)
    serve_web(settings.model_copy(update={"web": web}))


@main.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Listen here instead of web.port.")
@click.option("--long-talk", is_flag=True, help="Show how a conversation of 60 turns is kept.")
@click.pass_obj
def demo(settings: "Settings", port: int | None, long_talk: bool) -> None:
    """Serve the sample library; it is kept apart from yours, in `demo` of the data folder."""
    from rag.cli.ingest import ingest_paths, was_ingested
    from rag.web.server import serve as serve_web
    from rag.wiring.components import package_folder

    web = settings.web.model_copy(update={} if port is None else {"port": port})
    demo_settings = settings.model_copy(update={"data_dir": settings.data_dir / "demo", "web": web})
    if long_talk:
        address = f"http://{web.host}:{web.port}/long-talk"
        _console().print(f"A conversation of 60 turns, each with what a model is sent: {address}")
    elif not was_ingested(demo_settings, (package_folder("library"),)):
        library = package_folder("library")
        ingest_paths(demo_settings, (library,), console=_console(), is_served_next=True)
    serve_web(demo_settings)


@main.command()
@click.pass_obj
def worker(settings: "Settings") -> None:
    """Do background jobs without serving: ingests and summaries, beside any number of servers."""
    from rag.web.server import work

    work(settings)


@main.command()
@click.option("--owner", help="Whose sessions; by default those of this machine's owner.")
@click.option("--delete", "unwanted", metavar="ID", help="Delete this session and all it holds.")
@as_json_option
@click.pass_obj
def sessions(settings: "Settings", owner: str | None, unwanted: str | None, as_json: bool) -> None:
    """List sessions, newest use first."""
    from rag.sessions.store import SqlConversationStore
    from rag.wiring.stores import open_database

    owner = owner or settings.sessions.default_owner
    store = SqlConversationStore(open_database(settings))
    if unwanted is not None:
        store.open(unwanted, owner=owner).delete()
        return
    stored = store.sessions(owner, limit=1000)
    if as_json:
        rows = [{"id": s.id, "title": s.title, "messages": s.message_count} for s in stored]
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for session in stored:
        used = session.last_used_at.astimezone().strftime("%Y-%m-%d %H:%M")
        title = printable(session.title)
        click.echo(f"{session.id}  {used}  {session.message_count:>5}  {title}")


@main.command()
@click.pass_obj
def reindex(settings: "Settings") -> None:
    """Build the vector index anew from the database."""
    from rag.cli.ingest import reindex as rebuild

    rebuild(settings, console=_console(stderr=True))


@main.command()
@click.option("--all", "whole", is_flag=True, help="Those that the newest readers read, too.")
@click.pass_obj
def reread(settings: "Settings", whole: bool) -> None:
    """Read the kept files of documents anew that an older version read less well."""
    from rag.cli.ingest import reread as read_again

    if read_again(settings, console=_console(stderr=True), whole=whole).failed:
        raise click.exceptions.Exit(1)


@main.command()
@click.option("--repair", "repairs", is_flag=True, help="First make the indexes whole.")
@as_json_option
@click.pass_obj
def doctor(settings: "Settings", repairs: bool, as_json: bool) -> None:
    """Check everything Groundnote needs, and say what to do where something is missing."""
    from rag.cli.doctor import examine, repair

    if repairs:
        click.echo(f"Before the repair: {repair(settings)}.", err=True)
    findings = []
    for finding in examine(settings):
        findings.append(finding)
        if not as_json:
            sign = click.style("ok  ", "green") if finding.is_ok else click.style("not ok", "red")
            click.echo(f"{sign} {printable(f'{finding.subject}: {finding.detail}')}")
    if as_json:
        click.echo(json.dumps([*map(asdict, findings)], ensure_ascii=False))
    if not all(finding.is_ok for finding in findings):
        raise click.exceptions.Exit(1)


for command in (backup, restore, resume, originals, migrate):
    main.add_command(command)
main.add_command(models)
main.add_command(source)


@main.command()
@click.option("--http", "is_http", is_flag=True, help="Streamable HTTP instead of standard input.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where --http listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True)
@click.option("--url", help="The Groundnote server to ask; without, the one here, or none.")
@click.pass_obj
def mcp(settings: "Settings", is_http: bool, host: str, port: int, url: str | None) -> None:
    """Serve the library to clients of the Model Context Protocol (Claude Desktop, Cursor, …)."""
    from rag.cli.remote import serve_mcp

    serve_mcp(settings, is_http=is_http, host=host, port=port, url=url)


@main.group(invoke_without_command=True)
@click.pass_context
def collections(context: click.Context) -> None:
    """List collections; `add` makes one, `give` says who may do what with it."""
    if context.invoked_subcommand is None:
        for entry in _collections(context.obj).readable_by(""):
            everybody = entry.collection.everybody.name.lower()
            click.echo(
                f"{entry.id}  {entry.document_count:>6}  {entry.name}  "
                f"(of {entry.collection.owner or 'whoever runs this'}; everybody: {everybody})"
            )


@collections.command()
@click.argument("name")
@click.option("--everybody", default="none", help="none, read or add.")
@click.option("--owner", default="", help="Whose it is; without, yours who run the server.")
@click.pass_obj
def add(settings: "Settings", name: str, everybody: str, owner: str) -> None:
    """Make a collection."""
    from rag.documents.collections import right_named

    collection = _collections(settings).create(owner, name, everybody=right_named(everybody))
    click.echo(collection.id)


@collections.command()
@click.argument("name")
@click.argument("member")
@click.argument("right")
@click.pass_obj
def give(settings: "Settings", name: str, member: str, right: str) -> None:
    """Give a member, or `group:…`, a right: none, read, add, write or manage."""
    from rag.documents.collections import right_named

    store = _collections(settings)
    collection = store.find("", name)
    store.change(collection.id, members=store.members(collection.id) | {member: right_named(right)})


def _collections(settings: "Settings") -> "Collections":
    from rag.wiring.components import open_collections
    from rag.wiring.stores import open_database

    return open_collections(settings, open_database(settings))


@main.command()
@click.pass_obj
def audit(settings: "Settings") -> None:
    """Print who did what, when and from where: one JSON object a line, oldest first."""
    from rag.db.audit_trail import AuditTrail
    from rag.wiring.stores import open_database

    for entry in AuditTrail(open_database(settings)).entries():
        row = asdict(entry) | {"at": entry.at.isoformat()}
        click.echo(json.dumps(row, ensure_ascii=False))


def _console(*, stderr: bool = False, quiet: bool = False) -> "Console":
    """Return the console: standard output for people; with programs, progress goes to stderr."""
    from rich.console import Console

    return Console(stderr=stderr, quiet=quiet)


main.add_command(regress)
main.add_command(evaluate)
