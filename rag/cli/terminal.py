"""Shows the events of a turn on a terminal."""

import re
from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rag.cli.remote import ServerEvent
from rag.errors import RagError

# A Markdown table: a header, a rule and rows.
PIPES = re.compile(r"((?:^\|.*\|\n)\|[-: |]+\|(?:\n\|.*\|)*)", re.MULTILINE)
LINKS = re.compile(r"\[([^\[\]\n]+)\]\(/documents[^()\s]*\)")  # links to pages of the server
CELL_ENDS = re.compile(r"(?<!\\)\|")


def progress_bar(console: Console) -> Progress:
    """Return a progress bar, which shows on a terminal only."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(
        TextColumn("{task.description}", markup=False),  # names of files may look like markup
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Failure(RagError):
    """The turn failed; the message is for the user."""


def show(events: Iterable[ServerEvent], console: Console) -> dict[str, Any]:
    """Print an answer as it comes, then its sources; return the finished turn.

    Raises Failure when the turn ends with an error.
    """
    written = ""
    for name, values in events:
        if name == "resolved" and values["is_followup"]:
            console.print(f"[dim]searched for: {escape(values['query'])}[/dim]")
        elif name == "compaction":
            console.print(f"[dim]{escape(summary_line(values['report']))}[/dim]")
        elif name == "delta":
            written += values["text"]
            _print_text(values["text"], console)
        elif name == "discard":
            written = ""
            console.print(f"\n[dim]{escape(values['reason'])}[/dim]\n")
        elif name == "error":
            console.print()
            raise Failure(values["detail"])
        elif name == "final":
            _end(values, written, console)
            return values
    raise Failure("The answer broke off. Ask again.")


def _print_text(text: str, console: Console) -> None:
    """Print text as it comes; a complete table, such as a computed one, is drawn."""
    for part in PIPES.split(LINKS.sub(r"\1", text)):
        rows = [
            [cell.replace("\\", "") for cell in CELL_ENDS.split(line.strip().strip("|"))]
            for line in part.strip().splitlines()
        ]
        if not PIPES.fullmatch(part):
            console.print(part, end="", markup=False, highlight=False, soft_wrap=True)
            continue
        table = Table(box=SIMPLE)
        for name, rule in zip(rows[0], rows[1], strict=False):
            right = rule.strip().endswith(":")
            table.add_column(escape(name.strip()), justify="right" if right else "left")
        for row in rows[2:]:
            table.add_row(*(escape(cell.strip()) for cell in row))
        console.print()
        console.print(table)


def summary_line(report: dict[str, Any]) -> str:
    """Return what a summary holds, in one line."""
    stated = len(report["stated_citations"])
    return (
        f"earlier turns are summarised: {report['citations_kept'] + report['ranged_citations']} of "
        f"{report['citations_required']} citations ({stated} with their statement), "
        f"{report['names_kept']} of {report['names_required']} products"
    )


def _end(turn: dict[str, Any], written: str, console: Console) -> None:
    console.print()
    if turn["content"] != written:
        console.print("\n[dim]with the citations that were missing:[/dim]")
        console.print(turn["content"], markup=False, highlight=False, soft_wrap=True)
    console.print()
    for notice in turn["notices"]:
        console.print(f"[yellow]{escape(notice['text'])}[/yellow]", soft_wrap=True)
    for offer in turn["offers"]:
        console.print(f"[cyan]Ask instead: {escape(offer['label'])}[/cyan]", soft_wrap=True)
    for source in turn["sources"]:
        state = "" if source["state"] == "current" else f" ({source['state']} since)"
        place = " ".join(part for part in (source["document"], source["locator"]) if part)
        console.print(f"[dim]\\[{source['n']}] {escape(place + state)}[/dim]", soft_wrap=True)
    _warn(turn, console)


def _warn(turn: dict[str, Any], console: Console) -> None:
    for citation in turn["citations"]:
        if citation["verdict"] in ("contradicted", "off_subject"):
            warning = f"\\[{citation['n']}] {escape(citation['reason'])}"
            console.print(f"[yellow]{warning}[/yellow]", soft_wrap=True)
    for figure in turn["figures"]:
        if figure["status"] == "unfound":
            spelled = escape(turn["content"][figure["start"] : figure["end"]])
            console.print(f"[yellow]{spelled} stands in no cited source[/yellow]", soft_wrap=True)
    for statement in turn["unsourced"]:
        sentence = turn["content"][statement["start"] : statement["end"]]
        console.print(f"[yellow]without a source: {escape(sentence)}[/yellow]", soft_wrap=True)
