"""Which code the fitted weights belong to."""

import ast
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

_ROOMS = {
    "rag.citations.checking": ("silence", "case", "reading", "comparing", "naming"),
    "rag.text": ("blocks", "words", "related", "name_words"),
}
_IMPORTS = (ast.Import, ast.ImportFrom)


def fingerprint(rooms: Mapping[str, Sequence[str]] = _ROOMS) -> str:
    """Of the source of all modules that compute a feature, and of the words of languages."""
    told = hashlib.sha256()
    for room, modules in rooms.items():
        for module in modules:
            code = files(room).joinpath(f"{module}.py").read_text(encoding="utf-8")
            tree = ast.parse(code)
            tree.body = [each for each in tree.body if not isinstance(each, _IMPORTS)]
            told.update(ast.dump(tree).encode())  # however laid out, wherever names come from
    for name in ("en.toml", "de.toml", "names.toml", "en_related.txt"):
        told.update(files("rag.text.languages").joinpath(name).read_bytes())
    return told.hexdigest()[:16]
