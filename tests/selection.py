"""Which tests a change asks for: `python -m tests.selection [FILE…]` names them, for pytest.

Without files it takes what differs from the main branch, and what is not committed. A module asks
for the tests of its room, and for those elsewhere that import it, or what in its room builds on it.
"""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = ("tests/test_architecture.py", "tests/test_words_gone.py", "tests/test_goldens.py")
# What is no code of Python, and whose tests notice.
BESIDE = {
    "templates": ("tests/web",),
    "static": ("tests/web",),
    "data": ("tests/regression", "tests/test_sample_library.py"),
    "docs": ("tests/test_documentation.py", "tests/test_internals.py"),
    "requirements": ("tests/test_lock_files.py",),
    "pyproject.toml": ("tests/test_lock_files.py", "tests/test_extras.py"),
    "compose.yaml": ("tests/test_container_files.py",),
    "Dockerfile": ("tests/test_container_files.py",),
    "settings.json": ("tests/test_settings.py",),
    "rag/settings.py": ("tests/test_settings.py",),
    "rag/db/": ("tests/upgrade",),
}


def changed_files():
    """What differs from where this branch began, and what is not committed."""
    since = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return {*_git("diff", "--name-only", since[0]), *_git("ls-files", "-o", "--exclude-standard")}


def _git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split()


@cache
def imports(path):
    """Modules that a file imports anywhere in it, and names in strings such as `rag.x.y.z`."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
            for alias in node.names:
                modules.add(exports(node.module).get(alias.name, f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if text.startswith("rag.") and text.replace(".", "").isidentifier():
                modules |= {text, text.rpartition(".")[0]}
    return modules


@cache
def exports(package):
    """Where a package has the names from that it gives on."""
    path = ROOT / package.replace(".", "/") / "__init__.py"
    if not path.is_file():
        return {}
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: node.module for node in found for alias in node.names}


@cache
def files(folder):
    """All Python files below it."""
    return tuple(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py"))


def module_of(path):
    """Its dotted name."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def room_of(path):
    """The first folder below `rag`; of a module right there, the module."""
    return path.split("/")[1].removesuffix(".py")


def dependents(path):
    """It, and what builds on it in its own room, step by step."""
    room = [each for each in files("rag") if room_of(each) == room_of(path)]
    room = [each for each in room if not each.endswith("__init__.py")]
    reached = {path}
    while True:
        names = {module_of(each) for each in reached}
        more = {each for each in room if imports(each) & names} - reached
        if not more:
            return reached
        reached |= more


def rooms_for(path):
    """Its own; of what lies below all others and has no tests of its own, those that import it."""
    if (ROOT / "tests" / room_of(path)).is_dir():
        return {room_of(path)}
    return {room_of(each) for each in files("rag") if module_of(path) in imports(each)}


def importers(paths):
    """Test files that import one of them, themselves or by other files of tests."""
    names = {module_of(path) for path in paths}
    while True:
        reached = {each for each in files("tests") if imports(each) & names}
        more = {module_of(each) for each in reached} - names
        if not more:
            return {each for each in reached if Path(each).name.startswith("test_")}
        names |= {name for name in more if not _is_general(name)}
        if not any(not _is_general(name) for name in more):
            return {each for each in reached if Path(each).name.startswith("test_")}


def _is_general(name):
    """Whether every other test uses it: it says nothing of what a test is about."""
    return name in ("tests.conftest", "tests.applications", "tests.made", "tests.prepared")


def selected(changed):
    """Paths for pytest: of changed files that exist, or existed."""
    chosen = set(ALWAYS)
    for path in changed:
        for name, tests in BESIDE.items():
            chosen |= set(tests) if path.startswith(name) else set()
        if not path.endswith(".py"):
            continue
        if path.startswith("rag/"):
            chosen |= importers(dependents(path)) if (ROOT / path).exists() else set()
            chosen |= {f"tests/{room}" for room in rooms_for(path)}
        elif Path(path).name.startswith("test_"):
            chosen.add(path)
        elif path.startswith("tests/"):
            chosen |= importers({path})
    present = {each for each in chosen if (ROOT / each).exists()}
    folders = tuple(f"{each}/" for each in present if not each.endswith(".py"))
    return sorted(each for each in present if not each.startswith(folders or "\0"))


if __name__ == "__main__":
    print(*selected(set(sys.argv[1:]) or changed_files()))  # noqa: T201
