"""The test commands `regress` and `eval`, and saving a session as a test."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag.cli.source import as_json_option

if TYPE_CHECKING:  # loaded by the commands that need them
    from rag.settings import Settings

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-k", "named", default="", help="Only those whose file or title holds these words.")
@click.option(
    "--model",
    default="",
    type=click.Choice(["", "none", "recorded", "live"]),
    help="Who answers; without, a recording where there is one, else what the settings name.",
)
@click.option("--record", "records", is_flag=True, help="Keep the model's replies beside it.")
@click.option("--repeat", "repeats", default=1, type=click.IntRange(1, 100), help="So often.")
@click.option("--pair", "is_pair", is_flag=True, help="Say what compaction costs.")
@click.option("--documents", type=FOLDER, help="Over these instead of what a file names.")
@click.option("--compare", type=FILE, help="Beside an earlier --json: better, worse, same.")
@click.option("--html", type=NEW_FILE, help="Write a report to look at.")
@click.option("--junit", type=NEW_FILE, help="Write a report for a build server.")
@as_json_option
@click.pass_obj
def regress(settings: "Settings", /, files: tuple[Path, ...], **flags: Any) -> None:
    """Replay scripted conversations; folders stand for the files in them."""
    from rich.console import Console

    from rag.cli import evaluate as evaluation
    from rag.regression.replay import ReplayOptions

    choice = evaluation.ConversationChoice(
        files, flags["named"], flags["repeats"], flags["is_pair"]
    )
    options = ReplayOptions(flags["model"], flags["records"], documents=flags["documents"])
    outputs = {key: flags[key] for key in ("html", "junit", "compare", "as_json")}
    written = evaluation.WrittenFiles(**outputs)
    console = Console(stderr=written.as_json)
    code, output = evaluation.run(settings, choice, options, written, console)
    if written.as_json:
        click.echo(output)
    if code:
        raise click.exceptions.Exit(code)


@click.command("eval")
@click.argument("questions", type=FILE)
@click.argument("documents", type=click.Path(exists=True, path_type=Path))
@as_json_option
@click.pass_obj
def evaluate(settings: "Settings", questions: Path, documents: Path, as_json: bool) -> None:
    """Ask questions whose answers are known, and measure what comes back."""
    from rich.console import Console

    from rag.cli.evaluate import evaluate as ask_all
    from rag.regression import report
    from rag.regression.replay import Libraries
    from rag.regression.report import summary_of

    graded = list(ask_all(Libraries(settings), questions, documents))
    if as_json:
        click.echo(json.dumps(summary_of(graded), ensure_ascii=False))
    else:
        report.show_measures(graded, Console())


def keep(settings: "Settings", session_id: str, named: str = "") -> Path:
    """Write a session as a scripted conversation. Raises UserError if the file exists."""
    from rag.cli.remote import RemoteServer
    from rag.errors import UserError
    from rag.wiring.listeners import running_server

    path = Path(named or f"kept-{session_id[:8]}.conversation.json")
    if path.exists():
        raise UserError(f"{path} is there already. Name another file: /keep FILE.")
    url = running_server(settings.data_dir)
    if url:
        script = RemoteServer(url).script_of(session_id)
    else:
        from rag.render.export import as_conversation
        from rag.sessions.store import SqlConversationStore
        from rag.wiring.stores import open_database

        store = SqlConversationStore(open_database(settings))
        script = as_conversation(store.open(session_id, owner=settings.sessions.default_owner))
    path.write_text(json.dumps(script, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
