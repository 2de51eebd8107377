"""How often the passages stand first where a model's answer is wrong, and where it is right.

    python -m benchmarks.answer_gate [--questions N] [--folder DIR] [--show]

The product's own questions over the sample library, nine in a conversation, each through the whole
product. A scripted model on loopback answers as a very small one does: one sentence for all of a
conversation, a copy of the last passage that it was sent, words that are about nothing of it. Then
as a good one does: with the number, without one, and in a whole sentence of the source.
"""

import json
import logging
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.with_model import SENTENCE, SOURCE, Model
from rag.chat.prompts import CITE, SYSTEM_PROMPT
from rag.documents.files import IncomingFile
from rag.records import Answer, Finished
from rag.settings import HOME, Settings
from rag.wiring.application import Application, build

Question = dict[str, Any]
Says = Callable[[Question, list[tuple[int, str]]], str]  # of the sources that it was sent
MODEL = "small"
TOGETHER = 9  # questions of one conversation
BESIDE = (
    "Thank you for your message, it was a pleasure to read and I hope that you are well [1].",
    "As a language model I can help with many kinds of tasks, such as stories and poems [1].",
    "Please make sure that everything is in order before anything else is tried by anybody [1].",
    "There are many different opinions, and everybody has to find out what suits them best [1].",
)


class Scripted(Model):
    """Says of a question and its sources what a script says."""

    def __init__(self) -> None:
        super().__init__(every=0)
        self.question: Question = {}
        self.says: Says = lambda question, sources: ""

    def deltas(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        messages = body.get("messages", [])
        if not messages or messages[0]["content"][:60] != SYSTEM_PROMPT[:60]:
            return [{"content": "{}"}]
        sent = messages[-1]["content"].rpartition(CITE)[0]
        sources = [(int(each["number"]), each["text"]) for each in SOURCE.finditer(sent)]
        return [{"content": self.says(self.question, sources)}]


def holds(text: str, question: Question) -> bool:
    """Whether a text says what answers."""
    return _plain(str(question["key"])) in _plain(text)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*|_`\\]", " ", text).lower().split())


class OneSentence:
    """The first sentence of the first source of a conversation, ever again."""

    def __init__(self) -> None:
        self.said, self.asked = "", 0

    def __call__(self, question: Question, sources: list[tuple[int, str]]) -> str:
        if self.asked % TOGETHER == 0:
            found = ((n, SENTENCE.search(text)) for n, text in sources)
            told = ((number, each[0]) for number, each in found if each)
            number, said = next(told, sources[0])
            self.said = f"{said.strip().rstrip('.!?')} [{number}]."
        self.asked += 1
        return self.said


def last_passage(question: Question, sources: list[tuple[int, str]]) -> str:
    """A copy of what was sent last, which hardly ever answers."""
    number, text = sources[-1]
    return f"{' '.join(text.split())[:400].strip().rstrip('.')} [{number}]."


def beside(question: Question, sources: list[tuple[int, str]]) -> str:
    """Words about nothing that was sent, each time others."""
    return BESIDE[len(question["question"]) % len(BESIDE)]


def with_number(question: Question, sources: list[tuple[int, str]]) -> str:
    """The right answer with the number of the source that has it."""
    number = next((n for n, text in sources if holds(text, question)), sources[0][0])
    return f"{question['answer'].rstrip('.')} [{number}]."


def without_number(question: Question, sources: list[tuple[int, str]]) -> str:
    """The right answer alone."""
    return str(question["answer"])


def whole_sentence(question: Question, sources: list[tuple[int, str]]) -> str:
    """The sentence of a source that answers; else the right answer."""
    for number, text in sources:
        for sentence in SENTENCE.finditer(text):
            if holds(sentence[0], question):
                return f"{sentence[0].strip().rstrip('.!?')} [{number}]."
    return with_number(question, sources)


WEAK: dict[str, Callable[[], Says]] = {
    "one sentence": OneSentence,
    "last passage": lambda: last_passage,
    "beside": lambda: beside,
}
GOOD: dict[str, Says] = {
    "with its number": with_number,
    "without a number": without_number,
    "a whole sentence": whole_sentence,
}


def answers(
    application: Application, model: Scripted, says: Says, questions: list[Question]
) -> Iterator[tuple[Question, Answer]]:
    """Each question with its answer."""
    model.says = says
    for at, question in enumerate(questions):
        if at % TOGETHER == 0:
            session = application.store.create("benchmark")
        model.question = question
        *_, ended = application.assistant.ask(session, question["question"])
        assert isinstance(ended, Finished), ended
        assert ended.message.answer is not None
        yield question, ended.message.answer


def measured(
    application: Application, model: Scripted, says: Says, questions: list[Question], *, show: bool
) -> Counter[str]:
    """How many answers were wrong or right by themselves, and before which the passages stand."""
    found: Counter[str] = Counter()
    for question, answer in answers(application, model, says, questions):
        if answer.model != MODEL:
            found["by rules"] += 1
            continue
        aside = answer.set_aside
        said = aside.text if aside else answer.text
        is_right = holds(said, question) or question["answer"].rstrip(".").lower() in said.lower()
        kind = "right" if is_right else "wrong"
        found[kind] += 1
        found[f"{kind}, passages first"] += aside is not None
        if aside is not None and not is_right:
            found["of these the passages answer"] += holds(answer.text, question)
            found[aside.reason] += 1
        if show and (aside is None) is not is_right:
            print(f"  {kind}: {question['question']} | {said[:300]} | {aside and aside.reason}")
            print("     ", [(each.number, each.verdict.value) for each in answer.citations])
    return found


@click.command(help=__doc__)
@click.option("--questions", "count", default=1_000)
@click.option("--folder", type=click.Path(path_type=Path), help="Of data; read once, if it stays.")
@click.option("--show", is_flag=True, help="Print wrong answers that stay, right ones that don't.")
def main(*, count: int, folder: Path | None, show: bool) -> None:
    """Print a line for each way of answering."""
    logging.disable(logging.WARNING)
    rows = (HOME / "data" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [each for each in map(json.loads, rows) if each.get("key")][:count]
    with tempfile.TemporaryDirectory() as empty:
        model = Scripted()
        llm = {"base_url": model.url, "model": MODEL, "context_window": 16_000, "tools": False}
        checks, follow_up = {"model": "off"}, {"use_model": False}
        application = build(
            Settings.model_validate(
                {"data_dir": folder or empty, "llm": llm, "checks": checks, "follow_up": follow_up}
            )
        )
        application.start()
        paths = [path for path in (HOME / "data" / "library").rglob("*") if path.is_file()]
        files = [IncomingFile.from_bytes(path.name, path.read_bytes()) for path in sorted(paths)]
        list(application.ingestion.ingest(files))
        application.load()
        for name, says in [*GOOD.items(), *((name, make()) for name, make in WEAK.items())]:
            found = measured(application, model, says, questions, show=show)
            print(
                f"{name}: {', '.join(f'{n} {what}' for what, n in found.items() if n)}", flush=True
            )
        application.stop()
        model.shutdown()


if __name__ == "__main__":
    main()
