"""The few lines of YAML in front of a Markdown file."""

import re
from dataclasses import dataclass

FENCED = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]*(.*)")
PRODUCT_KEYS = {"product", "products", "model", "models"}


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What we use of it: the title and the products."""

    title: str = ""
    products: tuple[str, ...] = ()


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """The front matter, and the text after it.

    Reads only flat keys, `[a, b]` and `- a` lists: nothing else is needed, and no YAML parser
    means no YAML attacks.
    """
    match = FENCED.match(text.lstrip("\n"))
    if not match or not KEY.search(match.group(1)):
        return FrontMatter(), text
    values = _values(match.group(1).split("\n"))
    title = (values.get("title") or [""])[0]
    products = [name for key in sorted(PRODUCT_KEYS) for name in values.get(key, [])]
    return FrontMatter(title, tuple(products)), text.lstrip("\n")[match.end() :]


def _values(lines: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        entry = re.match(r"\s*-\s+(.*)", line)
        key = KEY.match(line)
        if entry:
            current.append(_unquote(entry.group(1)))
        elif key:
            current = values.setdefault(key.group(1).lower(), [])
            current.extend(_inline_values(key.group(2).strip()))
    return values


def _inline_values(text: str) -> list[str]:
    if text.startswith("[") and text.endswith("]"):
        parts = re.findall(r"\"[^\"]*\"|'[^']*'|[^,]+", text[1:-1])
        return [_unquote(part) for part in parts if part.strip()]
    return [_unquote(text)] if text else []


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
