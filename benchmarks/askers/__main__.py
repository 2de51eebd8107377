"""What askers get who never saw how answers are made: the whole product beside a plain baseline.

    python -m benchmarks.askers --data DIR --cache DIR [--half first|second|foreign] [--wrong]

`questions.jsonl` was written from the documents alone; `sources.json` names the public
repositories with the commit, of which DIR holds the Markdown files, each in a folder of its name.
Every folder is ingested once into the cache. One half is for looking at, the other for the end.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from benchmarks.askers.reading import Asked, Panel, is_held, is_marked
from benchmarks.baselines import BASELINES, Baselines
from rag.citations.markers import cited_numbers
from rag.cli.ingest import ingest_paths
from rag.language.sentences import split_sentences
from rag.language.words import STOP_WORDS
from rag.records import EVERYTHING, Answer, Failed, Hit
from rag.regression.report import ending
from rag.seams import Embedder, SessionHandle
from rag.search.word_index import words_of
from rag.settings import Settings
from rag.wiring.application import Application, build

HERE = Path(__file__).parent
SHOWN = 3
OWNER = "asker"
MANNERS = ("off", "greeting", "thanks", "help", "gibberish", "library", "about")


@dataclass(slots=True)
class Told:
    """What came of one question."""

    asked: Asked
    failed: str
    answer: Answer | None
    panels: Sequence[Panel]  # of a card, those that stand open

    @property
    def right(self) -> bool:
        if self.answer is None:
            return False
        if self.answer.card is None:
            return is_held(self.asked.phrase, self.answer.text)
        return any(each.is_right(self.asked) for each in self.panels)

    @property
    def first(self) -> bool:
        return bool(self.panels) and self.panels[0].is_right(self.asked)

    @property
    def claims(self) -> list[bool]:
        """Computed answers: whether each is right."""
        if self.answer is None:
            return []
        if self.answer.card is None:
            is_claim = self.answer.result is not None
            return [is_held(self.asked.phrase, self.answer.text)] if is_claim else []
        return []  # a card claims nothing

    @property
    def says_so(self) -> bool:
        """Whether the first paragraph is plain speech of our own, and nothing is marked."""
        if self.answer is None:
            return False
        first = re.split(r"\n\s*\n", self.answer.text.strip())[0]
        is_ours = not cited_numbers(first) and not first.startswith("**") and len(first) > 30
        return is_ours and not any(each.marks for each in self.panels)


# ── The baseline ─────────────────────────────────────────────────────────────────────────────


def plain_marks(question: str, text: str, embedder: Embedder) -> tuple[tuple[int, int], ...]:
    """The two sentences best by meaning and shared words."""
    spans = [span for span in split_sentences(text) if len(text[span.start : span.end]) > 15]
    if not spans:
        return ()
    rows = embedder.embed([question, *(text[span.start : span.end] for span in spans)])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = set(words_of(question)) - STOP_WORDS
    scores = rows[1:] @ rows[0]
    for place, span in enumerate(spans):
        held = set(words_of(text[span.start : span.end]))
        scores[place] += 0.5 * len(wanted & held) / max(1, len(wanted))
    return tuple((spans[n].start, spans[n].end) for n in np.argsort(-scores)[:2])


def plain_panels(question: str, hits: Sequence[Hit], embedder: Embedder) -> list[Panel]:
    """Open passages in search order."""
    return [
        Panel(hit.chunk.document_name, hit.passage, plain_marks(question, hit.passage, embedder))
        for hit in hits[:SHOWN]
    ]


# ── The product ──────────────────────────────────────────────────────────────────────────────


def put(application: Application, asked: Asked) -> Told:
    """Ask in a conversation of its own, after the question before if there is one."""
    session = application.store.create(OWNER)
    if asked.before:
        ending(application.assistant.ask(session, asked.before))
    last = ending(application.assistant.ask(session, asked.question))
    if isinstance(last, Failed) or last.message.answer is None:
        return Told(asked, getattr(last, "message", "no answer"), None, ())
    answer = last.message.answer
    return Told(asked, "", answer, _panels(answer, session))


def _panels(answer: Answer, session: SessionHandle) -> list[Panel]:
    if answer.card is None:
        return []
    shown = answer.card.open
    named = {each.number: each.document_name for each in session.sources([p.number for p in shown])}
    return [Panel(named[each.number], each.text, each.marked) for each in shown]


def put_all(application: Application, questions: Sequence[Asked]) -> Iterator[tuple[Told, Any]]:
    """Each with what search finds, and each of the plainest searches."""
    plain = Baselines(
        application.embedder, application.index, application.words, application.second
    )
    for asked in questions:
        hits = application.retriever.search(asked.question, EVERYTHING, limit=8)
        base = plain_panels(asked.question, hits, application.embedder)
        others = {
            name: _panels_of(application, [key for key, _ in ranking[:SHOWN]])
            for name, ranking in plain.rankings(asked.question).items()
        }
        try:
            yield put(application, asked), (base, others)
        except Exception as error:  # noqa: BLE001 - what breaks is what is measured
            yield Told(asked, repr(error), None, ()), (base, others)


def _panels_of(application: Application, chunk_ids: Sequence[str]) -> list[Panel]:
    chunks = application.documents.chunks(chunk_ids, EVERYTHING)
    return [Panel(chunks[key].document_name, chunks[key].text, ()) for key in chunk_ids]


# ── Figures ──────────────────────────────────────────────────────────────────────────────────


def share(told: Sequence[bool]) -> str:
    """How many of how many."""
    return f"{sum(told)}/{len(told)} {sum(told) / max(1, len(told)):.2f}"


def report(kind: str, rows: Sequence[tuple[Told, Any]]) -> None:
    """One block of figures for the questions of a kind."""
    told = [each for each, _ in rows]
    if kind in MANNERS:
        said = [each.says_so if kind not in ("library", "about") else _tells(each) for each in told]
        print(f"{kind:10} told first {share(said)}   failed {sum(bool(t.failed) for t in told)}")
        return
    base = [each for _, (each, _) in rows]
    others = {name: [each[name] for _, (_, each) in rows] for name in BASELINES}
    print(f"{kind:10} {len(told)} questions")
    print(f"  shown    product {share([t.right for t in told])}", end="   ")
    for name, panels in {"search": base, **others}.items():
        shown = [_any(p, t.asked) for p, t in zip(panels, told, strict=True)]
        print(f"{name} {share(shown)}", end="   ")
    print()
    print(f"  first    product {share([t.first for t in told])}", end="   ")
    for name, panels in {"search": base, **others}.items():
        first = [_any(p[:1], t.asked) for p, t in zip(panels, told, strict=True)]
        print(f"{name} {share(first)}", end="   ")
    print()
    print(f"  marked where the first is right  product {share(_marked(told))}", end="   ")
    print(f"plain {share(_marked_in(base, told))}")
    claims = [right for t in told for right in t.claims]
    declined = [t.answer is not None and t.answer.declined for t in told]
    print(f"  claims right {share(claims)}   declined {share(declined)}", end="   ")
    print(f"failed {sum(bool(t.failed) for t in told)}")


def _tells(told: Told) -> bool:
    return told.answer is not None and told.answer.card is None and not told.answer.declined


def _any(panels: Sequence[Panel], asked: Asked) -> bool:
    return any(each.is_right(asked) for each in panels)


def _marked(told: Sequence[Told]) -> list[bool]:
    return [is_marked(t.asked.phrase, t.panels[0]) for t in told if t.first]


def _marked_in(base: Sequence[Sequence[Panel]], told: Sequence[Told]) -> list[bool]:
    pairs = zip(base, told, strict=True)
    return [is_marked(t.asked.phrase, p[0]) for p, t in pairs if p and p[0].is_right(t.asked)]


def after_others(questions: Sequence[Asked]) -> list[Asked]:
    """Each question about text behind another one to the same folder: the talk turns."""
    plain = [each for each in questions if each.kind == "text"]
    turned = []
    for asked in plain:
        others = [o for o in plain if o.folder == asked.folder and o.file != asked.file]
        turned.append(replace(asked, before=others[len(asked.question) % len(others)].question))
    return turned


def library_of(folder: Path, cache: Path) -> Application:
    """Over a folder that is ingested once, with both models' vectors."""
    settings = Settings(data_dir=cache)
    if not cache.exists():
        ingest_paths(settings, [folder], console=Console(quiet=True))
    application = build(settings)
    if application.second is not None:
        for _ in application.second.make_missing():
            pass
    return application


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--cache", type=click.Path(path_type=Path), required=True)
@click.option("--half", type=click.Choice(["first", "second", "foreign"]), default="first")
@click.option("--folder", "folders", multiple=True)
@click.option("--turned", is_flag=True, help="Ask each question after one about something else.")
@click.option("--wrong", is_flag=True, help="Print what was not right.")
def main(
    data: Path, cache: Path, half: str, folders: tuple[str, ...], turned: bool, wrong: bool
) -> None:
    """Measure."""
    rows = [json.loads(line) for line in (HERE / "questions.jsonl").open(encoding="utf-8")]
    questions = [Asked(**row) for row in rows if row["half"] == half]
    if turned:
        questions = after_others(questions)
    found: list[tuple[Told, Any]] = []
    for name in folders or dict.fromkeys(each.folder for each in questions):
        mine = [each for each in questions if each.folder == name]
        application = library_of(data / name, cache / name)
        try:
            found += put_all(application, mine)
        finally:
            application.stop()
    for kind in dict.fromkeys(each.kind for each in questions):
        of_kind = [pair for pair in found if pair[0].asked.kind == kind]
        if of_kind:
            report(kind, of_kind)
    if wrong:
        for told, _ in found:
            _show(told)


def _show(told: Told) -> None:
    asked = told.asked
    text = told.answer.text[:160].replace("\n", " ") if told.answer else told.failed
    if asked.kind in MANNERS:
        print(f"{asked.kind} | {asked.question} → {text}")
        return
    signs = "".join("x" if held else "-" for held in (told.right, told.first))
    marks = "m" if told.first and is_marked(asked.phrase, told.panels[0]) else " "
    claim = "".join("C" if right else "W" for right in told.claims)
    if signs != "xx" or marks != "m" or claim:
        before = f"{asked.before} / " if asked.before else ""
        print(f"{signs}{marks}{claim} {asked.folder} | {before}{asked.question} → {text}")


if __name__ == "__main__":
    main()
