"""How each of the files is made: always the same, with an embedding model that counts words."""

import json
import random
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from benchmarks.strangers import PARTS
from benchmarks.verdict import CASES, answers, brings_sources
from rag import HistoryTrimmer
from rag.citations.verdicts import check
from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.tables.result import result_from
from tests.applications import app_of, application_of

DATA = Path(__file__).parents[2] / "data"
LIBRARY = DATA / "library"
TRADES = ("unseen", "fourth")
TABLE_ROWS = 20
HITS = 3
SHOWN = 90  # characters of a text
ROOM = 1_500  # tokens of a trimmed history
ASKED_AGAIN = 4  # each fourth question, at the end of a conversation of all


def files():
    """By name, what makes each."""
    return {
        "verdict": verdicts,
        "tables": tables,
        "cards": cards,
        "retrieval": retrieval,
        "recall": recall,
        "openapi": openapi,
    }


def short(text):
    plain = " ".join(text.split())
    return plain if len(plain) <= SHOWN else f"{plain[:SHOWN]}…"


@contextmanager
def application_over(contents):
    """An application over files, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        application = application_of(Settings(data_dir=Path(folder)))
        try:
            read = [
                IncomingFile(name, lambda _max, held=held: held) for name, held in contents.items()
            ]
            ended = [each for each in application.ingestion.ingest(read) if each.is_final]
            assert {each.stage for each in ended} == {"finished"}
            yield application
        finally:
            application.stop()


# ── Verdicts: what is said of a statement; where nothing is, it has no line ──────────────────


def verdicts():
    for path in sorted(CASES.glob("*.jsonl")):
        if not brings_sources(path):
            continue
        for answer in answers(path):
            checked = check(answer.text, answer.sources)
            for start, end, label, _style in answer.rows:
                yield from verdict_of(path.stem, answer.text[start:end], label, checked, start, end)


def verdict_of(file, statement, label, checked, start, end):
    said = [
        short(f"[{each.number}] {each.verdict} {each.reason}")
        for each in checked.citations
        if start <= each.start < end and each.verdict != "open"
    ]
    said += ["unsourced" for each in checked.unsourced if start <= each.start < end]
    if said:
        is_honest = label != "D"
        yield {"file": file, "is honest": is_honest, "statement": short(statement), "said": said}


# ── Tables: a question, and the figures that came of it ──────────────────────────────────────


def tables():
    for part in TRADES:
        rows = {each.name: each.rows(random.Random(each.name), TABLE_ROWS) for each in PARTS[part]}
        contents = {f"{each.name}.csv": each.file(rows[each.name]) for each in PARTS[part]}
        with application_over({name: text.encode() for name, text in contents.items()}) as app:
            for trade in PARTS[part]:
                for talk in trade.talks(rows[trade.name]):
                    session = app.store.create("golden")
                    for question, _wanted in talk:
                        yield {"table": trade.name, "question": question} | computed(
                            app, session, question
                        )


def computed(app, session, question):
    *_, end = app.assistant.ask(session, question)
    number = end.message.answer.result
    if not number:
        return {"said": short(end.message.content)}
    result = result_from(session.result(number))
    shown = [[str(cell) for cell in row] for row in result.rows[:HITS]]
    return {"plan": result.words, "rows": len(result.rows), "first": shown}


# ── The sample library: what is found, and what is shown of it ───────────────────────────────


@cache
def questions():
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def sample_library():
    found = sorted(path for path in LIBRARY.rglob("*") if path.is_file())
    return {path.relative_to(LIBRARY).as_posix(): path.read_bytes() for path in found}


@cache
def asked():
    """Of the whole sample library, once: what was found and answered for each question."""
    told = []
    with application_over(sample_library()) as app:
        for question in questions():
            hits = app.retriever.search(question, EVERYTHING, limit=HITS)
            session = app.store.create("golden")
            *_, end = app.assistant.ask(session, question)
            told.append((question, hits, end.message, session.sources()))
    return told


def retrieval():
    for question, hits, _message, _sources in asked():
        yield {"question": question, "found": [place(each.chunk) for each in hits]}


def cards():
    for question, _hits, message, sources in asked():
        card = message.answer.card
        places = {each.number: place(each) for each in sources}
        line = {"question": question}
        if card is None:
            yield line | {"told": short(message.content)}
            continue
        yield line | {
            "said": card.said or card.lead,
            "open": [f"[{each.number}] {places[each.number]}" for each in card.open],
            "marked": [short(each.text[a:b]) for each in card.open for a, b in each.marked],
            "folded": len(card.folded),
        }


def place(chunk):
    return f"{chunk.document_name}, {chunk.locator}"


# ── Recall: a conversation of all those questions, of which one comes back at its end ────────


def recall():
    said = []
    for question, _hits, message, _sources in asked():
        said += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": message.content},
        ]
    for question in questions()[::ASKED_AGAIN]:
        sent = HistoryTrimmer(max_tokens=ROOM).trim([*said, {"role": "user", "content": question}])
        *_, last = sent.messages
        lines = [short(each) for each in last["content"].splitlines() if each.strip()]
        yield {"question": question, "messages": len(sent.messages), "last": lines}


# ── What programs are told of our API, a call or a shape a line ──────────────────────────────


def openapi():
    with application_over({"a.md": b"# A\n\nIt is."}) as application:
        told = app_of(application).test_client().get("/openapi.json").get_json()
    for path, calls in told.pop("paths").items():
        yield from ({"call": f"{method.upper()} {path}"} | call for method, call in calls.items())
    for kind, shapes in told.pop("components").items():
        yield from ({"kind": kind, "name": name, "is": shape} for name, shape in shapes.items())
    yield told
