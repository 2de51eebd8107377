"""How statements over public sets are judged: right ones, wrongly cited ones, and altered ones.

Rules are made while looking at the `dev` half of the documents only; the other half is held out.
"""

import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pypdfium2 import PdfDocument

from benchmarks.corpora import rows_of
from rag.citations.comparison.case import ComparedStatement
from rag.citations.comparison.parser import read_source
from rag.citations.comparison.verdict import judge
from rag.language.figures import read_figures
from rag.language.sentences import split_sentences
from rag.records import Source, Verdict
from rag.seams import Embedder

RIGHT, WRONG, DISHONEST = "right", "wrong", "dishonest"
_CASES = Path(__file__).with_name("verdicts")
UNSEEN = _CASES / "unseen.jsonl"
UNSEEN_AGAIN = _CASES / "unseen_again.jsonl"
UNSEEN_THIRD = _CASES / "unseen_third.jsonl"
ANSWERED = ("emanual", "anthropic_docs")  # whose answers are judged sentence by sentence
ALTERED = ("figure", "negation")
_FEWEST = 3  # words of a sentence that is taken as a statement


@dataclass(frozen=True, slots=True)
class Case:
    """One statement with what it cites, and what is known of it."""

    kind: str  # right, wrong, dishonest, figure, negation
    text: str
    source: Source
    document: str

    @property
    def is_dev(self) -> bool:
        """By document, so that no half sees the other's."""
        return zlib.crc32(self.document.encode()) % 2 == 0


def source(text: str, title: str, *headings: str) -> Source:
    """A text as a source."""
    return Source(
        number=1,
        chunk_id=title,
        document_id=title,
        document_name=title,
        document_title=title,
        locator="",
        heading_path=tuple(filter(None, headings)),
        text=text,
        passage=text,
        content_hash="",
    )


def emanual(data: Path) -> Iterator[Case]:
    """People's answers over a manual; wrong: with the section of another question."""
    yield from _answered(data / "emanual")


def anthropic_docs(data: Path) -> Iterator[Case]:
    """Reference answers over a product's documentation."""
    yield from _answered(data / "anthropic_docs")


def _answered(folder: Path) -> Iterator[Case]:
    entries = {str(row["id"]): row for row in rows_of(folder / "corpus.jsonl")}
    cited: dict[str, list[str]] = {}
    for line in (folder / "dev" / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, entry, _ = line.split("\t")[:3]
        cited.setdefault(query, []).append(entry)
    rows = [row for row in rows_of(folder / "dev" / "queries.jsonl") if row["id"] in cited]
    made = {
        each: source(row["text"], row.get("product") or row["title"], row["title"])
        for each, row in entries.items()
    }
    ids = sorted({cited[row["id"]][0] for row in rows})
    for at, row in enumerate(rows):
        own = cited[row["id"]]
        other = next(ids[(7 * at + k) % len(ids)] for k in range(99) if _is_other(ids, at, k, own))
        said = row["answer"]
        yield Case(RIGHT, said, _joined([made[each] for each in own]), own[0])
        yield Case(WRONG, said, made[other], own[0])
        yield from altered(said, _joined([made[each] for each in own]), own[0])


def _is_other(ids: Sequence[str], at: int, more: int, own: Sequence[str]) -> bool:
    return ids[(7 * at + more) % len(ids)] not in own


def _joined(sources: Sequence[Source]) -> Source:
    text = "\n\n".join(each.passage for each in sources)
    return replace(sources[0], text=text, passage=text)


def expertqa(data: Path) -> Iterator[Case]:
    """Claims of models over web pages, with what experts judged of them."""
    for row in rows_of(data / "expertqa" / "dev" / "answers.jsonl.gz"):
        for claim in row["claims"]:
            kind = {"Complete": RIGHT, "Incomplete": WRONG, "Missing": WRONG}.get(claim["support"])
            texts = [each.partition("\n") for each in claim["evidence"]]
            text = "\n\n".join(rest.strip() for _, _, rest in texts if rest.strip())
            if kind and len(text) > 100:
                said = re.sub(r"\s*\[[\d, ]+\]", "", claim["text"])
                yield Case(kind, said, source(text, texts[0][0]), row["id"])


def wice(data: Path) -> Iterator[Case]:
    """Sentences of an encyclopedia and the pages that they cite."""
    for row in rows_of(data / "wice" / "dev" / "claims.jsonl.gz"):
        kind = {"supported": RIGHT, "not_supported": WRONG}.get(row["label"])
        lines = [each for each in row["evidence"] if not each.startswith("(meta data)")]
        titles = [each for each in row["evidence"] if "TITLE:" in each]
        title = titles[0].partition("TITLE:")[2].strip() if titles else row["claim_page"]
        page = source("\n".join(lines), title)
        if kind:
            yield Case(kind, row["claim"], page, row["claim_page"])
        if kind == RIGHT:
            yield from altered(row["claim"], page, row["claim_page"])


def scifact(data: Path) -> Iterator[Case]:
    """Claims over abstracts: carried, or contradicted and not to be found there."""
    corpus = {str(row["id"]): row for row in rows_of(data / "scifact" / "corpus.jsonl.gz")}
    for row in rows_of(data / "scifact" / "dev" / "claims.jsonl"):
        for cited in row["cited"]:
            found = row["evidence"].get(cited, {}).get("label")
            page = corpus[cited]
            made = source(page["text"], page["title"])
            yield Case(RIGHT if found == "SUPPORT" else WRONG, row["text"], made, cited)
            if found == "SUPPORT":
                yield from altered(row["text"], made, cited)


def unseen(data: Path, path: Path = UNSEEN) -> Iterator[Case]:
    """Sentences that a stranger wrote over documents that no rule was made with."""
    for row in rows_of(path):
        where = row["source"]
        page = _page(data, where["set"], where["id"], where["phrase"])
        for kind, key in ((RIGHT, "H"), (DISHONEST, "D")):
            for said in row[key]:
                yield Case(kind, said, page, where["id"])


def _page(data: Path, name: str, entry: str, phrase: str) -> Source:
    """Some 2,500 characters of an entry around a phrase; of a report, a page."""
    if name == "sec10q":
        report, _, number = entry.partition("#")
        with PdfDocument(data / name / "docs" / report) as pdf:
            text = pdf[int(number)].get_textpage().get_text_range().replace("\r\n", "\n")
        return source(text[:3500], report)
    row = next(e for e in rows_of(data / name) if entry in (e.get("id"), e.get("path")))
    text = row["text"]
    begin = text.rfind("\n\n", 0, max(0, text.find(phrase) - 700)) + 1 if len(text) > 2500 else 0
    title = f"{row.get('product', '')} {row.get('title', '')}".strip() or entry
    return source(text[begin : begin + 2500], title)


SETS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "emanual": emanual,
    "anthropic_docs": anthropic_docs,
    "expertqa": expertqa,
    "wice": wice,
    "scifact": scifact,
    "unseen": unseen,
    "unseen again": partial(unseen, path=UNSEEN_AGAIN),
    "unseen third": partial(unseen, path=UNSEEN_THIRD),
}


def sentences(case: Case) -> Iterator[Case]:
    """Each sentence of a case by itself."""
    for span in split_sentences(case.text):
        text = case.text[span.start : span.end]
        if len(text.split()) > _FEWEST:
            yield replace(case, text=text)


# ── Alterations ──────────────────────────────────────────────────────────────────────────────

_AFFIRMS = re.compile(
    r"\b(is|are|was|were|can|will|may|must|should|has been|have been)\b(?! not\b)"
)
_DENIES = re.compile(r"\b(is|are|was|were|can|will|may|must|should|do|does|did) ?not\b")


def altered(text: str, cited: Source, document: str) -> Iterator[Case]:
    """Each sentence with one figure changed, or one verb turned."""
    for span in split_sentences(text):
        said = text[span.start : span.end]
        for kind, changed in (("figure", _other_figure(said, cited)), ("negation", _turned(said))):
            if len(changed.split()) > _FEWEST:
                yield Case(kind, changed, cited, document)


def _other_figure(said: str, cited: Source) -> str:
    """A plain number with one that the source does not have: the next ones up."""
    for figure in read_figures(said):
        shown = said[figure.start : figure.end]
        number = re.search(r"\d+", shown)
        if figure.kind != "amount" or number is None or figure.value < 2:
            continue
        new = int(number[0]) + 1
        while re.search(rf"(?<!\d){new}(?!\d)", cited.passage):
            new += max(1, new // 7)
        at = figure.start + number.start()
        return f"{said[:at]}{new}{said[at + len(number[0]) :]}"
    return ""


def _turned(said: str) -> str:
    if _DENIES.search(said):
        return _DENIES.sub(lambda found: found[1], said, count=1)
    turned = _AFFIRMS.sub(lambda found: f"{found[0]} not", said, count=1)
    return turned if turned != said else ""


# ── What becomes of them ─────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Tally:
    """The verdicts over one kind of statement."""

    warned: int = 0
    supported: int = 0
    all: int = 0

    @property
    def shown(self) -> str:
        share = 100 * self.warned / self.all if self.all else 0.0
        return f"{share:5.1f} % of {self.all:4}"


def tally(
    data: Path, name: str, embedder: Embedder | None
) -> tuple[dict[tuple[str, bool], Tally], dict[bool, float]]:
    """The verdicts of a set by kind and half, and the AUC of right against wrong by half."""
    found: dict[tuple[str, bool], Tally] = {}
    near: dict[tuple[str, bool], list[float]] = {}
    for case in SETS[name](data):
        is_cut = name in ANSWERED and case.kind in (RIGHT, WRONG)
        for each in sentences(case) if is_cut else [case]:
            judged = judge(ComparedStatement(each.text), [read_source(each.source)], embedder)
            key = (each.kind, each.is_dev)
            told = found.setdefault(key, Tally())
            told.all += 1
            told.warned += judged.verdict.is_warning
            told.supported += judged.verdict in (Verdict.SUPPORTED, Verdict.COMPUTED)
            near.setdefault(key, []).append(judged.near)
    halves = (True, False)
    return found, {h: auc(near.get((RIGHT, h), []), near.get((WRONG, h), [])) for h in halves}


def auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """How often a right one is nearer than a wrong one."""
    ordered = sorted(wrong)
    below = (bisect_left(ordered, x) + bisect_right(ordered, x) for x in right)
    return sum(below) / max(1, 2 * len(right) * len(wrong))


def print_table(data: Path, embedder: Embedder | None = None) -> None:
    """Each set, the half that was looked at beside the half that was not."""
    print(
        "warned of                dev              held out          shown as supported or computed"
    )
    for name in SETS:
        found, aucs = tally(data, name, embedder)
        for kind in (RIGHT, WRONG, DISHONEST, *ALTERED):
            own = [found.get((kind, half), Tally()) for half in (True, False)]
            if any(each.all for each in own):
                told = "   ".join(each.shown for each in own)
                carried = " ".join(f"{each.supported:4}" for each in own)
                both = (
                    f"   AUC {aucs[True]:.3f} {aucs[False]:.3f}"
                    if kind == RIGHT and (WRONG, True) in found
                    else ""
                )
                print(f"{name:15} {kind:9} {told}   {carried}{both}")
