"""Questions over rows: generated conversations, and people's questions over tables of the web.

python -m benchmarks.tables conversations [--rows 20 200 5000 | --rows 1000000 --schemas 1]
python -m benchmarks.tables strangers [--half dev|second|unseen|third|fourth] [--told]
python -m benchmarks.tables web --data DIR [--half a|b] [--chosen]   (DIR holds tables/, dev/)
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.strangers import PARTS, Turn, Wanted
from rag.documents.files import IncomingFile
from rag.errors import RagError
from rag.records import EVERYTHING, Resolution, Table
from rag.settings import Settings
from rag.tables.plan import Choice
from rag.tables.result import TableResult, result_from
from rag.wiring.application import Application, build
from tests.fakes import HashEmbedder

# Subject, category, time, main figure, second figure; the categories' and the times' values.
SCHEMAS = tuple(
    tuple(part.split() for part in line.split("|"))
    for line in """
    Product Region Quarter Revenue Units|North South West|Q1 Q2 Q3 Q4
    Customer Country Quarter Sales Orders|France Spain Italy|Q1 Q2 Q3
    Item Warehouse Year Stock Reserved|Berlin Oslo Rome|2022 2023 2024
    Campaign Channel Month Clicks Leads|Email Search Radio|January February May
    Supplier Category Year Spend Invoices|Paper Metal Glass|2021 2022 2023
    Store City Quarter Turnover Visitors|Paris Lyon Nice|Q1 Q2 Q4
    Project Department Year Budget Hours|Research Design Legal|2024 2025
    Title Genre Year Copies Returns|Crime Poetry Travel|2019 2020 2021
    Route Carrier Quarter Passengers Flights|Alfa Bravo Delta|Q1 Q2 Q3
    Farm Crop Year Harvest Fields|Wheat Barley Maize|2020 2021 2022
    Server Zone Month Requests Errors|East Central Pacific|March April June
    Agent Team Quarter Tickets Escalations|Red Blue Green|Q2 Q3 Q4
    """.strip().splitlines()
)
Row = tuple[str, str, str, float, int]
NOTHING = Resolution("", False, "unchanged")


def rows_of(schema: int, count: int) -> list[Row]:
    """Rows of one schema, the same in every run."""
    chance = random.Random(schema * 1_000_003 + count)
    (subject, *_), categories, times = SCHEMAS[schema]
    return [
        (
            f"{subject} {chance.randint(1, 24)}X",
            chance.choice(categories),
            chance.choice(times),
            chance.randint(100, 999_999) / 100,
            chance.randint(1, 90),
        )
        for _ in range(count)
    ]


def turns_of(schema: int, rows: Sequence[Row]) -> Iterator[list[tuple[str, list[tuple[Any, ...]]]]]:
    """Conversations with what each turn has to give."""
    (subject, category, _when, main, second), categories, times = SCHEMAS[schema]
    first, other = times[-1], times[0]
    in_first = [row for row in rows if row[2] == first]
    in_other = [row for row in rows if row[2] == other]
    some = categories[0]
    yield [
        (f"Top 10 {subject.lower()}s in {first}", top(in_first, (0,), 3, 10)),
        (f"What about {other}?", top(in_other, (0,), 3, 10)),
        (f"Show me by {category.lower()}", top(in_other, (0, 1), 3, 10)),
        ("as a chart", top(in_other, (0, 1), 3, 10)),
    ]
    mine = [row for row in in_first if row[1] == some]
    yield [
        (f"total {main.lower()} in {first}", [(total(in_first, 3),)]),
        (f"only {some}", [(total(mine, 3),)]),
        (f"and {categories[1]}?", [(total([r for r in in_first if r[1] == categories[1]], 3),)]),
        (f"back to all {plural(category.lower())}", [(total(in_first, 3),)]),
        (f"without {some}", [(total([r for r in in_first if r[1] != some], 3),)]),
        ("how many is that?", [(len([r for r in in_first if r[1] != some]),)]),
    ]
    sums = groups(rows, (1,), 4)
    whole = sum(sums.values())
    yield [
        (f"{second.lower()} by {category.lower()}", sorted((*k, v) for k, v in sums.items())),
        ("as a share", sorted((*k, v, 100 * v / whole) for k, v in sums.items())),
        (f"how many rows in {first}?", [(len(in_first),)]),
        (f"average {main.lower()} in {other}", [((total(in_other, 3) or 0) / len(in_other),)]),
        (f"which {category.lower()} has the most {second.lower()}?", top(rows, (1,), 4, 1)),
        (f"how many different {subject.lower()}s are there?", [(len({r[0] for r in rows}),)]),
    ]


def plural(word: str) -> str:
    """Good enough for the categories above."""
    return word[:-1] + "ies" if word.endswith("y") else f"{word}s"


def groups(rows: Sequence[Row], keys: Sequence[int], figure: int) -> dict[tuple[Any, ...], float]:
    """Sums by keys."""
    found: dict[tuple[Any, ...], float] = defaultdict(float)
    for row in rows:
        found[tuple(row[key] for key in keys)] += row[figure]
    return found


def top(rows: Sequence[Row], keys: Sequence[int], figure: int, count: int) -> list[tuple[Any, ...]]:
    """The highest sums."""
    ranked = sorted(groups(rows, keys, figure).items(), key=lambda p: (-round(p[1], 4), p[0]))
    return [(*key, value) for key, value in ranked[:count]]


def total(rows: Sequence[Row], figure: int) -> float | None:
    """The sum of one column."""
    return float(sum(row[figure] for row in rows)) if rows else None


def is_same(result: TableResult | None, wanted: list[tuple[Any, ...]]) -> bool:
    """Exact but for the last digits of floating point."""
    if result is None or len(result.rows) != len(wanted):
        return False
    return all(
        len(row) == len(want) and all(map(_near, row, want))
        for row, want in zip(result.rows, wanted, strict=True)
    )


def _figure(text: str) -> float | str:
    """A cell as it was written: €1,234 or 12,90 €."""
    plain = re.sub(r"[^\d.,-]", "", text)
    is_german = re.search(r",\d\d$", plain) or text.strip().endswith("€")
    plain = plain.replace(".", "").replace(",", ".") if is_german else plain.replace(",", "")
    return float(plain) if re.fullmatch(r"-?\d+(\.\d+)?", plain) else text


def _near(got: Any, want: Any) -> bool:
    if isinstance(want, int | float):
        got = _figure(got) if isinstance(got, str) else got
        return isinstance(got, int | float) and abs(got - want) < 1e-6 * max(1, abs(want))
    return str(got) == str(want)


def conversations(sizes: Sequence[int], schemas: int) -> None:
    """Every turn of every conversation, at every size."""
    for size in sizes:
        right = asked = 0
        seconds: list[float] = []
        for schema in range(min(schemas, len(SCHEMAS))):
            rows = rows_of(schema, size)
            names = SCHEMAS[schema][0]
            lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
            with opened({f"list{schema}.csv": "\n".join(lines)}) as application:
                for turns in turns_of(schema, rows):
                    session = application.store.create("bench")
                    for question, wanted in turns:
                        began = time.perf_counter()
                        *_, end = application.assistant.ask(session, question)
                        seconds.append(time.perf_counter() - began)
                        number = end.message.answer and end.message.answer.result
                        stored = number and session.result(number)
                        found = result_from(stored) if stored else None
                        asked += 1
                        right += is_same(found, wanted)
                        if not is_same(found, wanted):
                            said = found.words if found else end.message.content[:80]
                            print(f"  wrong: {names} {question!r}: {said}", file=sys.stderr)
        seconds.sort()
        print(
            f"| {size:,} rows | {right} of {asked} turns | "
            f"p95 {seconds[int(len(seconds) * 0.95)] * 1000:.0f} ms |"
        )


class opened:  # noqa: N801  (used as a context manager alone)
    """An application over some files, for as long as it is needed."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> Application:
        settings = Settings(data_dir=Path(self._folder.name))
        self._application = build(settings, embedder=HashEmbedder())
        incoming = [IncomingFile.from_bytes(n, t.encode()) for n, t in self._files.items()]
        for report in self._application.ingestion.ingest(incoming):
            if report.error is not None:
                print(report.name, report.reason, file=sys.stderr)
        return self._application

    def __exit__(self, *_: object) -> None:
        self._application.stop()
        self._folder.cleanup()


# ── Strangers ────────────────────────────────────────────────────────────────────────────────


def strangers(size: int, half: str, *, is_told: bool) -> None:
    """Conversations over trades that share one library, each part apart."""
    for name, trades in PARTS.items():
        if half and half != name:
            continue
        rows = {each.name: each.rows(random.Random(each.name), size) for each in trades}
        files = {f"{each.name}.csv": each.file(rows[each.name]) for each in trades}
        counts: Counter[str] = Counter()
        with opened(files) as application:
            for trade in trades:
                for talk in trade.talks(rows[trade.name]):
                    for question, grade, text in _talked(application, talk):
                        counts[grade] += 1
                        if is_told and grade != "right":
                            print(f"  {grade}: {trade.name} {question!r}: {text}", file=sys.stderr)
        asked = sum(counts.values())
        for grade, count in sorted(counts.items()):
            print(f"| {name}, {size:,} rows | {grade} | {count} of {asked} | {count / asked:.1%} |")


def _talked(application: Application, talk: Sequence[Turn]) -> Iterator[tuple[str, str, str]]:
    session = application.store.create("bench")
    for question, wanted in talk:
        *_, end = application.assistant.ask(session, question)
        number = end.message.answer and end.message.answer.result
        stored = number and session.result(number)
        found = result_from(stored) if stored else None
        if found is None:
            is_said = wanted is None or _says(end.message.content, wanted)
            yield question, "right" if is_said else "declined", end.message.content[:150]
            continue
        is_right = wanted is not None and _holds(found.rows, wanted)
        grade = "wrong, with a doubt" if found.notes else "wrong, without a doubt"
        if wanted is None and found.notes:
            is_right = True
        yield (
            question,
            "right" if is_right else grade,
            f"{found.words} {found.notes} {found.rows[:2]}",
        )


def _says(text: str, wanted: Wanted) -> bool:
    """Whether a card shows the one name that was asked for; a figure stands in it by chance."""
    is_name = len(wanted) == 1 and len(wanted[0]) == 1 and isinstance(wanted[0][0], str)
    return is_name and _plain(wanted[0][0]) in _plain(text)


def _plain(value: Any) -> str:
    return re.sub(r"[^\w]", "", str(value).casefold())


def _holds(rows: Sequence[tuple[Any, ...]], wanted: Wanted) -> bool:
    """Whether some of the columns are what was wanted, in any order of the rows."""
    if not wanted or len(rows) != len(wanted):
        return not rows and (not wanted or wanted == [(0,)])
    width = len(wanted[0])
    return any(
        _alike([tuple(row[at] for at in places) for row in rows], wanted)
        for places in combinations(range(len(rows[0])), width)
    )


def _alike(rows: Sequence[tuple[Any, ...]], wanted: Wanted) -> bool:
    left = list(wanted)
    for row in rows:
        same = next((each for each in left if all(map(_near, row, each))), None)
        if same is None:
            return False
        left.remove(same)
    return True


# ── Tables of the web ────────────────────────────────────────────────────────────────────────


def web(data: Path, half: str, *, is_chosen: bool) -> None:
    """What is claimed and offered, right and wrong, as shares of the questions."""
    lines = (data / "dev" / "queries.jsonl").read_text().splitlines()
    queries = [json.loads(line) for line in lines]
    names = sorted({query["table"] for query in queries})
    if half:
        names = [name for name in names if (zlib.crc32(name.encode()) % 2 == 0) == (half == "a")]
    files = {name: (data / "tables" / name).read_text("utf-8") for name in names}
    counts: Counter[str] = Counter()
    with opened(files) as application:
        tables: dict[str, list[Table]] = defaultdict(list)
        for table in application.tables.tables(EVERYTHING):
            tables[table.document_name].append(table)
        for query in queries:
            if query["table"] in files:
                among = None if is_chosen else tables[query["table"]]
                counts[_graded(application, query, among)] += 1
    asked = sum(counts.values())
    for grade, count in sorted(counts.items()):
        print(f"| {grade} | {count} of {asked} | {count / asked:.1%} |")


def _graded(application: Application, query: dict[str, Any], among: list[Table] | None) -> str:
    """What a person gets: an answer, buttons, or the passages alone."""
    asked = application.table_answers
    choices = asked.library.understand(query["text"], EVERYTHING, among=among)
    sure = asked.claimed(choices)
    if sure is not None:
        return f"claimed, {_result(application, sure, query)}"
    shown = asked.offered(query["text"], choices)
    if not shown:
        return "passages"
    is_right = "right" in [_result(application, each, query) for each in shown]
    return f"offered, {'right' if is_right else 'wrong'}"


def _result(application: Application, choice: Choice, query: dict[str, Any]) -> str:
    try:
        result = application.table_answers.library.run(choice.table, choice.plan)
    except RagError:
        return "wrong"
    columns = (dict.fromkeys(map(str, column)) for column in zip(*result.rows, strict=True))
    return "right" if any(_matches(list(got), query["answers"]) for got in columns) else "wrong"


def _matches(got: Sequence[str], wanted: Sequence[str]) -> bool:
    """Denotations as the data's authors compare them."""
    if len(got) != len(wanted):
        return False
    return all(any(_equal(g, w) for w in wanted) for g in got)


def _equal(got: str, wanted: str) -> bool:
    a, b = _canonical(got), _canonical(wanted)
    try:
        return abs(float(a.replace(",", "")) - float(b.replace(",", ""))) < 1e-6
    except ValueError:
        return a == b


def _canonical(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    plain = re.sub(r"[‐‑‒–—−]", "-", re.sub(r"[‘’´`]", "'", plain))
    plain = re.sub(r"((?<!^)\[[^\]]*\]|\[\d+\]|[•♦†‡*#+])*$", "", plain.strip())
    plain = re.sub(r"(?<!^)( \([^)]*\))*$", "", plain.strip())
    return re.sub(r"\s+", " ", re.sub(r'^"([^"]*)"$', r"\1", plain).rstrip(".")).lower().strip()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("conversations", "strangers", "web"))
    parser.add_argument("--rows", type=int, nargs="+", default=[20, 200, 5_000])
    parser.add_argument("--schemas", type=int, default=len(SCHEMAS), help="only the first so many")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--half", choices=("a", "b", *PARTS), default="")
    parser.add_argument("--told", action="store_true", help="print what was not right")
    parser.add_argument("--chosen", action="store_true", help="choose among all tables")
    asked = parser.parse_args()
    if asked.what == "conversations":
        conversations(asked.rows, asked.schemas)
    elif asked.what == "strangers":
        strangers(asked.rows[0] if len(asked.rows) == 1 else 60, asked.half, is_told=asked.told)
    elif asked.data is None:
        parser.error("web needs --data")
    else:
        web(asked.data, asked.half, is_chosen=asked.chosen)


if __name__ == "__main__":
    main()
