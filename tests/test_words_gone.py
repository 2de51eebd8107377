"""Names that were given up stay gone: docs/internals/words.tsv says what came in their place."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = (ROOT / "docs/internals/words.tsv").read_text(encoding="utf-8").splitlines()[1:]
ROWS = [tuple(row.split("\t")) for row in TABLE]
MODULES = {old: new for old, new in ROWS if ":" not in old}
# Participles, adverbs and pronouns name no module.
NO_NOUNS = {
    "asked", "asking", "bringing", "calm", "drafting", "found", "given", "held", "kept", "late",
    "leaning", "look", "meaning", "named", "naming", "once", "reading", "remembered", "said",
    "seen", "shown", "stated", "storing", "told", "together", "wanted", "warned", "within",
}  # fmt: skip
FORMER = ("rag/sources/", "rag/evaluation/")  # paths of theirs that others import


def path_of(module):
    stem = ROOT / module.replace(".", "/")
    return stem.with_suffix(".py") if stem.with_suffix(".py").is_file() else stem / "__init__.py"


def moved(module):
    """Where it stands now, with the packages around it."""
    for old in sorted(MODULES, key=len, reverse=True):
        if module == old or module.startswith(f"{old}."):
            return MODULES[old] + module[len(old) :]
    return module


@cache
def names_in(path):
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("old", MODULES)
def test_a_module_that_was_renamed_is_not_there_again(old):
    assert not path_of(old).is_file()


@pytest.mark.parametrize(("old", "new"), [row for row in ROWS if ":" in row[0]])
def test_a_name_that_was_given_up_is_not_used_again(old, new):
    module, name = old.split(":")
    path = path_of(moved(module))

    assert not path.is_file() or name not in names_in(path)


def test_no_module_is_called_by_what_is_no_noun():
    paths = (path.relative_to(ROOT).as_posix() for path in (ROOT / "rag").rglob("*.py"))

    assert [
        path for path in paths if not path.startswith(FORMER) and Path(path).stem in NO_NOUNS
    ] == []


# A function is a verb with its noun: a participle says neither what it does nor what it gives.
NO_VERBS = {
    "asked", "at", "each", "every", "found", "given", "held", "kept", "known", "meant", "named",
    "noted", "own", "said", "settled", "shown", "told", "wanted", "way", "ways", "within",
}  # fmt: skip


def test_no_private_function_is_called_by_a_participle():
    paths = (ROOT / "rag").rglob("*.py")
    named = {path.relative_to(ROOT).as_posix(): names_in(path) for path in paths}

    assert [
        (path, name)
        for path, names in named.items()
        for name in names
        if name.startswith("_") and name.strip("_") in NO_VERBS
        if "migrations" not in path  # what was released is never changed
    ] == []


def test_no_other_function_is_called_by_a_participle():
    paths = [path for path in (ROOT / "rag").rglob("*.py") if "migrations" not in path.parts]

    assert NO_VERBS.isdisjoint(name for path in paths for name in names_in(path))


# Nor is a local or a parameter, which is called by what it holds.
NO_LOCALS = {
    "asked", "at", "each", "found", "given", "held", "kept", "known", "own", "said", "told",
}  # fmt: skip


def names_bound_in(function):
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_locals_and_parameters_are_called_by_what_they_hold():
    paths = [path for path in (ROOT / "rag").rglob("*.py") if "migrations" not in path.parts]

    assert [  # of migrations: what was released is never changed
        (path.relative_to(ROOT).as_posix(), node.name, name)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in sorted(NO_LOCALS.intersection(names_bound_in(node)))
    ] == []


# Nor what a class, a record or a module holds, nor a method: by its first word, `at` only alone.
NO_ATTRIBUTES = (NO_LOCALS - {"at"}) | {
    "every", "meant", "named", "noted", "past", "seen", "settled", "shown", "wanted", "ways",
    "within",
}  # fmt: skip
# What is stored, sent or configured keeps its name, and so does what Python programs build on.
FROZEN = {
    "AuditEntry.at": "a line of `groundnote audit --json`",
    "Answer.given": "stored with each answer",
    "Card.said": "stored with each answer",
    "CardModel.said": "the API",
    "Certainty.FOUND": "stored by its value",
    "Check.held": "the report of `groundnote regress --json`",
    "Citation.given": "stored with each answer",
    "CitationModel.given": "the API",
    "Compress.within_tokens": "scripted conversations",
    "DocumentSource.every_seconds": "a column",
    "DocumentSourceModel.every": "the API",
    "Expectations.within_tokens": "scripted conversations",
    "FigureStatus.FOUND": "the API",
    "MessageMatches.found": "the API, which is made of its fields",
    "FoundMessagesModel.found": "the API",
    "Manifest.noted_at": "the list of a data folder's files",
    "Message.known_sources": "stored with each question",
    "NewSourceBody.every": "the API",
    "PlayedTurn.said": "the report of `groundnote regress --json`",
    "SourceBody.every": "the API",
    "Recognised.NAMED": "a label of a metric",
    "Standing.ASKED": "stored by its value",
    "Standing.KEPT": "stored by its value",
    "SummaryReport.said": "stored with each summary",
    "TablePlan.each": "stored with each result",
    "TrimmedMemory.said": "a model of the public package that programs store",
}


def attributes_in(node, owner=""):
    """What a class or a module holds, with where: fields, constants, methods, `self.name = …`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield owner, child.name
            yield from attributes_in(child, child.name)
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield owner, child.name
            stored = (n for n in ast.walk(child) if isinstance(n, ast.Attribute))
            yield from ((owner, n.attr) for n in stored if isinstance(n.ctx, ast.Store))
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            names = (n for n in ast.walk(child) if isinstance(n, ast.Name))
            yield from ((owner, n.id) for n in names if isinstance(n.ctx, ast.Store))
        else:
            yield from attributes_in(child, owner)


def test_what_is_held_is_called_by_what_it_is():
    paths = [path for room in ("rag", "groundnote") for path in (ROOT / room).rglob("*.py")]
    names = {
        f"{owner}.{name}".removeprefix("."): path.relative_to(ROOT).as_posix()
        for path in paths
        if "migrations" not in path.parts  # what was released is never changed
        for owner, name in attributes_in(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_").lower().split("_")[0] in NO_ATTRIBUTES or name.strip("_").lower() == "at"
    }

    assert {name: path for name, path in names.items() if name not in FROZEN} == {}
    assert names.keys() == FROZEN.keys()  # none is excused that is not there


# Of all functions and methods: whose name, whatever it is hidden by, four or more have.
MOST_SHARED = 0.24


def test_few_functions_are_called_as_three_others_are():
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    paths = [path for path in (ROOT / "rag").rglob("*.py") if "migrations" not in path.parts]
    nodes = [n for path in paths for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    seams = {
        method.name
        for node in nodes
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases)
        for method in node.body
        if isinstance(method, functions)
    }
    names = Counter(seams)  # all that answers to a seam has its methods: each counts once
    names.update(
        function.name.strip("_")
        for node in nodes
        for function in ast.iter_child_nodes(node)
        if isinstance(function, functions) and not function.name.startswith("__")
        if not (isinstance(node, ast.ClassDef) and function.name in seams)
    )
    shared = [name for name, count in names.most_common() if count >= 4]

    assert sum(map(names.get, shared)) <= MOST_SHARED * names.total(), shared


def test_what_somebody_may_read_is_called_readable():
    calls_within = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "rag").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if "within"
        in (getattr(node, "arg", ""), getattr(node, "id", ""), getattr(node, "name", ""))
    ]

    assert calls_within == []
