"""The few lines of YAML or TOML in front of a Markdown file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag.documents.cleaning import day_in

FENCED = re.compile(
    r"\A(?:---|(\+{3}))[ \t]*\n(.*?)\n(?(1)\+{3}|(?:---|\.\.\.))[ \t]*(?:\n|\Z)", re.DOTALL
)
KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*[:=][ \t]*(.*)")
BLOCK = re.compile(r"[|>][+-]?")  # the value stands in the lines below, set in
# How a page is built, addressed and dated tells a reader nothing.
MACHINE_KEY = re.compile(
    r"title$|slug|layout|permalink|date|draft|weight|order|nav_|sidebar|toc|id$|image|url|path|link"
    r"|redirect|template|author|published|lastmod|tags$|hide|custom_|pagination|position|lang$"
)
MACHINE_VALUE = re.compile(
    r"https?://\S*|true|false|null|-?\d+|\d{4}-\d\d-\d\d.*|[/.]\S*|\W*", re.I
)
PROPERTY_KEYS = {
    "author": ("author", "authors", "by"),
    "date": ("date", "published", "created", "updated", "lastmod", "modified", "last_updated"),
    "tags": ("tags", "tag", "categories", "category", "keywords"),
}
PRODUCT_KEYS = {"product", "products", "model", "models"}


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What we use of it."""

    title: str = ""
    products: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()  # "key: value", without what only machines read
    author: str = ""
    date: str = ""  # the latest that it names
    tags: tuple[str, ...] = ()


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """The front matter, and the text after it.

    Reads only flat keys, `[a, b]` and `- a` lists: nothing else is needed, and no YAML parser
    means no YAML attacks.
    """
    match = FENCED.match(text.lstrip("\n"))
    if not match or not KEY.search(match.group(2)):
        return FrontMatter(), text
    values = _values(match.group(2).split("\n"))
    title = (values.get("title") or [""])[0]
    products = [name for key in sorted(PRODUCT_KEYS) for name in values.get(key, [])]
    named = {
        name: tuple(value for key in keys for value in values.get(key, []) if value)
        for name, keys in PROPERTY_KEYS.items()
    }
    front = FrontMatter(
        title,
        tuple(products),
        tuple(_facts(values)),
        ", ".join(named["author"]),
        max(map(day_in, named["date"]), default=""),
        named["tags"],
    )
    return front, text.lstrip("\n")[match.end() :]


def _facts(values: dict[str, list[str]]) -> Iterator[str]:
    for key, entries in values.items():
        told = [entry for entry in entries if not MACHINE_VALUE.fullmatch(entry)]
        if told and not MACHINE_KEY.match(key):
            yield f"{key.replace('_', ' ')}: {', '.join(told)}"


def _values(lines: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    current: list[str] = []
    in_block = False
    for line in lines:
        entry = re.match(r"\s*-\s+(.*)", line)
        key = KEY.match(line)
        if in_block and line.startswith(" "):
            current[:] = [" ".join([*current, line.strip()])]
        elif entry:
            current.append(_unquote(entry.group(1)))
        elif key:
            current = values.setdefault(key.group(1).lower(), [])
            in_block = bool(BLOCK.fullmatch(key.group(2).strip()))
            current.extend([] if in_block else _inline_values(key.group(2).strip()))
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
