"""Questions that people asked so often that the makers of a documentation wrote them down.

    python -m benchmarks.askers.frequent --data DIR --cache DIR [--folder NAME]…

Of each repository in `frequent.json` DIR holds a checkout in a folder of its name. The headings of
its page of frequent questions are what is asked; what stands below each is put among the other
pages as a page of its own, without the question and without a title, and is the one right answer.
Where the page is there in further languages, their headings are put to it as well. Nothing was
chosen by these questions: no weight, no bound, no rule.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.askers.__main__ import HERE, library_of
from benchmarks.askers.finding import places, table
from benchmarks.askers.reading import Asked, plain

_HEADING = re.compile(r"^#{2,4}\s+(.+?)\s*(?:\{[^{}]*\})?\s*$")
_MARKUP = re.compile(r"<[^>]*>|:[\w-]+:|\{#[^}]*\}|[*_`#\\]|\[([^\]]*)\]\([^)]*\)")
FEWEST_WORDS = 15  # of an answer
PHRASE = 8  # words by which it is known again


def pairs(page: str) -> Iterator[tuple[str, str]]:
    """Headings with what stands below them, outside of code."""
    heading, lines, is_code = "", [""], False
    for line in [*page.splitlines(), "## "]:
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else _HEADING.match(line)
        if match is None and line != "## ":
            lines.append(line)
            continue
        if heading:
            yield heading, "\n".join(lines).strip().strip("-").strip()
        heading, lines = _MARKUP.sub(r"\1", match[1]).strip() if match else "", []


def prepare(source: dict[str, Any], checkout: Path, folder: Path, name: str) -> list[Asked]:
    """Lay the pages out without the questions; what is to be asked."""
    without = re.compile(source.get("without", "$^"))
    for path in sorted((checkout / source["folder"]).rglob("*.md*")):
        place = path.relative_to(checkout / source["folder"])
        if path.stem.lower() not in ("faq", "preguntas-frecuentes") and not without.search(
            str(place)
        ):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / place.with_suffix(".md"))
    pages = [source["questions"], *source.get("translations", [])]
    first, *others = [list(pairs((checkout / page).read_text("utf-8"))) for page in pages]
    asked = []
    for number, (question, answer) in enumerate(first):
        words = plain(answer).split()
        if len(words) < FEWEST_WORDS:
            continue
        file = f"answers/{number:02}.md"
        (folder / "answers").mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(answer + "\n", encoding="utf-8")
        phrase = " ".join(words[:PHRASE])
        headings = [question, *(other[number][0] for other in others if len(other) == len(first))]
        asked += [Asked("held back", "text", name, text, file, phrase) for text in headings]
    return asked


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--cache", type=click.Path(path_type=Path), required=True)
@click.option("--folder", "folders", multiple=True)
@click.option("--places", "is_listing", is_flag=True, help="Print the places of each question.")
def main(data: Path, cache: Path, folders: tuple[str, ...], is_listing: bool) -> None:
    """Measure."""
    sources = json.loads((HERE / "frequent.json").read_text("utf-8"))
    everything = []
    for name in folders or sources:
        asked = prepare(sources[name], data / name, cache / "files" / name, name)
        application = library_of(cache / "files" / name, cache / name)
        try:
            found = [places(application, one) for one in asked]
        finally:
            application.stop()
        if is_listing:
            for one, row in zip(asked, found, strict=True):
                print(f"{row}  {one.question}")
        table(name, found)
        everything += found
    table("all", everything)


if __name__ == "__main__":
    main()
