"""Which code the fitted weights belong to."""

import ast
import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files

_IMPORTS = (ast.Import, ast.ImportFrom)
# Words of a language that no sign of a card is read by.
_OF_STATEMENTS = (
    "negations", "limits", "telling", "closings", "opposites", "universal", "restricting",
    "around_documents", "prohibiting", "points_back", "narrows", "takes_back", "elides", "manners",
    "declines", "reports", "conditions", "supposes", "prevails", "supersedes", "differences",
    "increases", "decreases", "additions", "joint", "averages", "sums",
    "multiples", "ratios", "shares",
)  # fmt: skip


def fingerprint(rooms: Mapping[str, Sequence[str]]) -> str:
    """Of the source of all modules that compute a feature, and of the words of languages."""
    told = hashlib.sha256()
    for room, modules in rooms.items():
        for module in modules:
            code = files(room).joinpath(f"{module}.py").read_text(encoding="utf-8")
            tree = ast.parse(code)
            tree.body = [each for each in tree.body if not isinstance(each, _IMPORTS)]
            told.update(ast.dump(tree).encode())  # however laid out, wherever names come from
    for name in ("en.toml", "de.toml", "names.toml"):
        sections = tomllib.loads(files("rag.text.languages").joinpath(name).read_text("utf-8"))
        words = dict[str, object]()
        for section, told_there in sections.items():
            words |= told_there if isinstance(told_there, dict) else {section: told_there}
        read = {field: words[field] for field in words if field not in _OF_STATEMENTS}
        told.update(repr(sorted(read.items())).encode())
    told.update(files("rag.text.languages").joinpath("en_related.txt").read_bytes())
    return told.hexdigest()[:16]
