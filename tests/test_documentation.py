"""The pages of the documentation: their examples run, what they name is there."""

import re
from pathlib import Path

import pytest
import yaml

from rag.cli import main

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in [*PAGES, ROOT / "README.md"]
    for number, code in enumerate(FENCED.findall(page.read_text(encoding="utf-8")), start=1)
]


@pytest.mark.slow
@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    exec(compile(code, "example", "exec"), {})


def test_every_page_is_in_the_menu_and_every_entry_is_a_page():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]

    assert sorted(_pages(menu)) == [str(page.relative_to(ROOT / "docs")) for page in PAGES]


def _pages(entry):
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [page for value in values for page in _pages(value)]


def test_links_lead_to_pages():
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).is_file()
    ]

    assert broken == []


def test_commands_that_are_told_of_exist():
    text = "\n".join(page.read_text(encoding="utf-8") for page in [*PAGES, ROOT / "README.md"])
    told = set(re.findall(r"`groundnote ([a-z]+)", text)) | set(
        re.findall(r"^ +(?:\.venv/bin/)?groundnote ([a-z]+)", text, re.MULTILINE)
    )

    assert told - set(main.commands) == set()
