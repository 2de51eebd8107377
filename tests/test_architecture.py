"""The house keeps its shape: imports point down, and every name is one thing."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from rag.settings import Settings
from rag.wiring.stores import open_database

ROOT = Path(__file__).parents[1]
ORDER = [
    {"errors", "records", "tokens"},
    {"seams"},  # below runtime: short calls of models know what a model is
    {"runtime"},
    {"language"},
    {"citations"},
    {"db"},
    {"documents"},
    {"search", "tables", "llm"},
    {"sessions"},
    {"memory"},
    {"render"},
    {"chat"},
    {"library"},
    {"ingestion"},
    {"settings"},  # below connectors, whose addresses and logins they hold
    {"connectors"},
    {"jobs", "operations"},
    {"wiring"},
    {"web", "mcp", "regression"},
    {"sources", "evaluation"},  # former paths that others import
    {"cli"},
    {"wsgi", "__init__"},
]
WEB = [
    {"rag.web.request_context"},
    {"rag.web.access"},
    {"rag.web.problems", "rag.web.http_server"},
    {"rag.web.turns"},
    {"rag.web.api"},
    {"rag.web.pages", "rag.web.openai"},
    {"rag.web"},
    {"rag.web.server"},
]
LEVEL = {part: level for level, parts in enumerate(ORDER) for part in parts}
MODULES = sorted((ROOT / "rag").rglob("*.py"))
# One name for two things: what is the same idea in two rooms, or the field's own word in both.
PAIRS = {
    "Source": "cited by a number; where documents come from",
    "Span": "a stretch of text; of time, as OpenTelemetry calls it",
    "Term": "of a query, and of a statement: both are what weighs in a comparison",
}
HEAVY = {
    "torch", "sentence_transformers", "chromadb", "transformers", "openai", "pypdfium2", "docx",
    "pptx", "openpyxl", "tiktoken", "flask", "sqlalchemy", "duckdb", "sqlglot",
    "opentelemetry",
}  # fmt: skip


def part_of(path: Path) -> str:
    return path.relative_to(ROOT / "rag").parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def parts_imported_by(path: Path) -> set[str]:
    """The parts of rag/ that a file imports: `from rag.llm.windows import X` gives "llm"."""
    names = set()
    for found in nodes_of(path):
        if isinstance(found, ast.Import):
            names |= {alias.name for alias in found.names}
        elif isinstance(found, ast.ImportFrom):
            assert found.level == 0, f"{path}: write the import in full"
            if found.module == "rag":
                names |= {f"rag.{alias.name}" for alias in found.names}
            names.add(found.module or "")
    return {name.split(".")[1] for name in names if name.startswith("rag.")}


def may_import(path: Path, target: str) -> bool:
    part = part_of(path)
    beside = LEVEL[target] == LEVEL[part] and not (ROOT / "rag" / part).is_dir()
    is_entrance = path == ROOT / "rag" / "__init__.py"
    return target == part or LEVEL[target] < LEVEL[part] or beside or is_entrance


def types_named_by(path: Path) -> list[str]:
    """Classes, type variables and names of types, whether others may use them or not."""
    named = [each.name for each in nodes_of(path) if isinstance(each, ast.ClassDef)]
    for each in tree_of(path).body:
        if isinstance(each, ast.Assign | ast.AnnAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            named += [target.id for target in targets if isinstance(target, ast.Name)]
    bare = [name.lstrip("_") for name in named]
    return [name for name in bare if name[:1].isupper() and not name.isupper()]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


BY_NAME = {module_of(path): path for path in MODULES}


@cache
def modules_imported_by(name: str) -> set[str]:
    """The modules of rag/ that one imports when it runs, also within its functions."""
    waiting: list[ast.AST] = [tree_of(BY_NAME[name])]
    named = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, ast.If) and ast.unparse(found.test) == "TYPE_CHECKING":
            waiting += found.orelse
            continue
        if isinstance(found, ast.Import):
            named |= {alias.name for alias in found.names}
        elif isinstance(found, ast.ImportFrom):
            members = {f"{found.module}.{alias.name}" for alias in found.names}
            named |= members if members <= BY_NAME.keys() else members | {found.module}
        waiting += ast.iter_child_nodes(found)
    return {each for each in named if each in BY_NAME and each != name}


def loop_in(graph: dict[str, set[str]]) -> list[str]:
    """One, each member importing the next."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def members_of(room: str) -> dict[str, set[str]]:
    """The files and folders of a room, each with those that it imports."""
    graph: dict[str, set[str]] = {}
    for name in BY_NAME:
        if name.startswith(f"rag.{room}"):
            member = member_of(name)
            imported = {member_of(each) for each in modules_imported_by(name)}
            beside = {each for each in imported if each.startswith(f"rag.{room}.")}
            graph.setdefault(member, set()).update(beside - {member})
    return graph


def member_of(module: str) -> str:
    return ".".join(module.split(".")[:3])


class TestImportsGoOneWay:
    def test_between_modules(self):
        assert loop_in({name: modules_imported_by(name) for name in BY_NAME}) == []

    @pytest.mark.parametrize("room", sorted({part_of(path) for path in MODULES}))
    def test_between_the_files_and_folders_of_a_room(self, room):
        assert loop_in(members_of(room)) == []

    def test_within_the_web(self):
        level = {name: place for place, names in enumerate(WEB) for name in names}
        graph = members_of("web")

        assert graph.keys() == level.keys()
        assert [
            f"{member} must not import {other}"
            for member, others in graph.items()
            for other in others
            if level[other] >= level[member]
        ] == []

    def test_a_loop_is_seen(self):
        assert loop_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})


class TestEveryModule:
    def test_imports_only_what_lies_below(self):
        upwards = [
            f"{path} must not import rag.{target}"
            for path in MODULES
            for target in parts_imported_by(path)
            if not may_import(path, target)
        ]

        assert upwards == []

    def test_is_called_as_nothing_that_its_package_hands_on(self):
        """Else `from rag.db import audit` is a table or a module, by what was imported before."""
        taken = [
            f"{module} is also a name in {package}"
            for package in MODULES
            if package.name == "__init__.py"
            for node in ast.parse(package.read_text()).body
            if isinstance(node, ast.ImportFrom)
            for module in (package.with_name(f"{alias.name}.py") for alias in node.names)
            if module.exists() and node.module != ".".join(package.parent.relative_to(ROOT).parts)
        ]

        assert taken == []

    def test_calls_a_type_as_no_other_does(self):
        times = Counter(name for path in MODULES for name in types_named_by(path))

        twice = {name for name, count in times.items() if count > 1}
        assert twice == set(PAIRS)

    def test_says_what_it_is_for(self):
        trees = {path: tree_of(path) for path in MODULES}

        assert [
            path for path, tree in trees.items() if tree.body and not ast.get_docstring(tree)
        ] == []


class TestSeamsOfASession:
    """One for each kind of caller: what memory needs settles nothing of a session."""

    def test_each_holds_one_subject(self):
        methods = {
            node.name: sum(isinstance(member, ast.FunctionDef) for member in node.body)
            for node in nodes_of(BY_NAME["rag.seams.conversations"])
            if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
        }

        assert "SessionHandle" in methods
        assert {name: count for name, count in methods.items() if count > 16} == {}

    @pytest.mark.parametrize("path", sorted((ROOT / "rag/memory").glob("*.py")), ids=module_of)
    def test_memory_takes_what_memory_needs(self, path):
        assert "SessionHandle" not in path.read_text()


# Pages that are fetched are made into documents, which are read like any other file.
MAKE_DOCUMENTS = {"rag/connectors/confluence.py", "rag/connectors/web/pages.py"}
FIND_SECRETS = {"rag/connectors/kinds.py"}  # also as HTML spells them
TAGS = (
    "a|abbr|b|blockquote|body|br|button|code|dd|details|div|dl|dt|em|form|h[1-6]|head|hr|"
    "html|i|iframe|img|input|label|li|link|main|mark|meta|ol|option|p|pre|q|s|script|"
    "section|select|small|span|strong|style|sub|summary|sup|svg|table|tbody|td|textarea|"
    "tfoot|th|thead|time|title|tr|u|ul|video"
)
TAG = re.compile(rf"</?(?:{TAGS})(?=[\s>/])[^<]*(?:>|=[\"']?$)", re.IGNORECASE)
IS_PATTERN = re.compile(r"\(\?|\\[bs]")  # reads HTML, and makes none


def filled(node: ast.AST) -> str:
    """The text of a template that words are put into; "" for anything else."""
    match node:
        case ast.JoinedStr(values):
            return "".join(part.value for part in values if isinstance(part, ast.Constant))
        case ast.Call(ast.Attribute(ast.Constant(str(text)), "format" | "join")):
            return text
        case ast.BinOp(ast.Constant(str(text)), ast.Mod() | ast.Add(), _):
            return text
        case ast.BinOp(_, ast.Add(), ast.Constant(str(text))):
            return text
    return ""


def holds_tag(text: str) -> bool:
    return bool(TAG.search(text)) and not IS_PATTERN.search(text)


def html_made_in(tree: ast.AST) -> list[str]:
    """Where text becomes HTML: by tags around words, or by what says that a text is safe."""
    made = [filled(node) for node in ast.walk(tree) if holds_tag(filled(node))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Markup" and node.args:
            made.append(ast.unparse(node))
        if isinstance(node, ast.ImportFrom) and node.module in ("html", "markupsafe"):
            made += [alias.name for alias in node.names if alias.name == "escape"]
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", "") or "", *(alias.name for alias in node.names)]
            made += [name for name in names if name.partition(".")[0] in ("nh3", "bleach")]
    return made


class TestHtml:
    def test_is_made_in_one_room_alone(self):
        made = {
            name: found
            for path in MODULES
            if (name := str(path.relative_to(ROOT))) not in MAKE_DOCUMENTS | FIND_SECRETS
            if part_of(path) != "render"
            if (found := html_made_in(tree_of(path)))
        }

        assert made == {}

    @pytest.mark.parametrize("template", sorted((ROOT / "templates").glob("*")))
    def test_no_template_lets_words_through_as_they_are(self, template):
        assert not re.search(r"\|\s*safe\b|autoescape\s+false", template.read_text("utf-8"))

    @pytest.mark.parametrize(
        "code",
        [
            'Markup("{}<mark>{}</mark>").format(a, b)', 'f"<p>{a}</p>"', '"<b>" + a', "Markup(a)",
            '"<li>{}</li>".format(a)', '"<td>%s" % a', 'f\'<a href="{a}">\'',
            "from html import escape", "import nh3", '"<br>".join(lines)', 'a + "</svg>"',
        ],
    )  # fmt: skip
    def test_is_seen_when_made(self, code):
        assert html_made_in(ast.parse(code))


def modules_after(statement: str) -> set[str]:
    """What is loaded once a statement ran in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


class TestImporting:
    def test_the_package_loads_nothing_heavy(self):
        assert not modules_after("import rag; rag.HistoryTrimmer") & HEAVY

    def test_help_is_shown_before_anything_is_loaded(self):
        loaded = modules_after("from rag.cli import main; main(['--help'], standalone_mode=False)")

        assert not loaded & {"pydantic", "rich", "sqlalchemy", "rag.records", "rag.settings"}

    def test_sessions_are_listed_before_what_answers_is_loaded(self, tmp_path):
        open_database(Settings(data_dir=tmp_path)).dispose()

        loaded = modules_after(
            f"import os; os.environ['GROUNDNOTE_DATA_DIR'] = {str(tmp_path)!r};"
            "from rag.cli import main; main(['sessions'], standalone_mode=False)"
        )

        assert "rag.sessions.store" in loaded
        assert not loaded & (HEAVY - {"sqlalchemy"})
        assert not loaded & {"alembic", "numpy", "rich", "rag.wiring.application"}

    def test_a_page_is_shown_before_models_queues_and_indexes_are_loaded(self, tmp_path):
        loaded = modules_after(
            "from pathlib import Path; from rag.settings import Settings;"
            "from rag.wiring.application import build; from rag.web import create_app;"
            f"app = create_app(build(Settings(data_dir=Path({str(tmp_path)!r}))));"
            "assert app.test_client().get('/').status_code == 200"
        )

        clients = {"redis", "psycopg", "openai", "tiktoken", "httpx", "opentelemetry"}
        models = {"torch", "sentence_transformers", "transformers", "openvino", "tokenizers"}
        readers = {"chromadb", "duckdb", "sqlglot", "fsspec", "numpy", "rapidfuzz"}
        shown_later = {"markdown_it", "nh3", "snowballstemmer", "limits"}
        assert not loaded & (clients | models | readers | shown_later)
        assert not loaded & {
            "rag.chat.assistant",
            "rag.citations.verdicts",
            "rag.ingestion.pipeline",
            "rag.chat.context",
        }
        assert not {
            name for name in loaded if name.startswith(("rag.library", "rag.tables.matcher"))
        }


def test_settings_json_holds_only_known_keys():
    from rag.settings import load_settings

    assert load_settings(ROOT / "settings.json").summarization_settings.enabled
