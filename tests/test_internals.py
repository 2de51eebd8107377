"""The pages about the inside name what is there, and the glossary stays short."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "internals").glob("*.md"))
PLACE = re.compile(r"`((?:rag|tests|benchmarks)/[\w/.]+?\.(?:py|toml))(?::([A-Za-z_][\w.]*))?`")
READ = [*PAGES, ROOT / "CONTRIBUTING.md"]


@cache
def defined_in(path):
    """Names of a module: `function`, `Class`, `Class.method`, `CONSTANT`."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (each for each in node.body if isinstance(each, ast.FunctionDef))
            names |= {f"{node.name}.{each.name}" for each in inner}
    return names


def wrong_in(text):
    for path, name in PLACE.findall(text):
        if not (ROOT / path).is_file():
            yield path
        elif name and name not in defined_in(ROOT / path):
            yield f"{path}:{name}"


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_name_on_a_page_is_there(page):
    assert list(wrong_in(page.read_text(encoding="utf-8"))) == []


def test_a_name_that_is_gone_is_seen():
    assert list(
        wrong_in("`rag/settings.py:Nothing` `rag/nothing.py` `rag/settings.py:Settings`")
    ) == [
        "rag/settings.py:Nothing",
        "rag/nothing.py",
    ]


def test_the_pages_tell_one_of_each():
    assert {page.stem for page in PAGES} >= {
        "question", "upload", "table", "summary", "verdict", "glossary",
    }  # fmt: skip
    assert all(
        len(PLACE.findall(page.read_text("utf-8"))) > 5
        for page in PAGES[:-1]
        if page.stem != "glossary"
    )


def test_the_glossary_has_no_more_than_25_words():
    lines = (ROOT / "docs" / "internals" / "glossary.md").read_text("utf-8").splitlines()
    words = [
        word for line in lines if line.startswith("| ") for word in line.split("|")[1].split(",")
    ]

    assert 10 < len(words) - 1 <= 25
