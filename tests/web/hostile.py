"""Hostile requests, one for each text and list that /openapi.json tells of."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Each makes a text of so many characters; what is slow in a reader of text is slow in one of these.
KINDS = {
    "letters": lambda size: "a" * size,
    "words": lambda size: ("word " * size)[:size],
    "different words": lambda size: " ".join(f"w{at}" for at in range(size // 7))[:size],
    "blanks": lambda size: " " * (size - 1) + "x",
    "lines": lambda size: ("a\n" * size)[:size],
    "opened brackets": lambda size: "[" * size,
    "brackets": lambda size: ("[]()" * size)[:size],
    "markers": lambda size: ("[1]" * size)[:size],
    "ranges": lambda size: ("[1-20]" * size)[:size],
    "figures": lambda size: "9" * size,
    "amounts": lambda size: ("1,000.50 EUR and " * size)[:size],
    "dates": lambda size: ("2026-01-02 " * size)[:size],
    "stops": lambda size: "." * size,
    "sentences": lambda size: ("Is it so? " * size)[:size],
    "quotes": lambda size: "\"'" * (size // 2),
    "code fences": lambda size: ("```\n" * size)[:size],
    "stars": lambda size: "*_" * (size // 2),
    "dollars": lambda size: "$" * size,
    "wide letters": lambda size: "１［" * (size // 2),
    "marks on a letter": lambda size: "a" + "\u0301" * (size - 1),
}
SAID = {"role": "user", "content": "revenue by region", "input": "revenue", "type": "text"}
MEGABYTE = 1_000_000
SHORT = 50_000  # what fits into an address
LISTED = 20_000
DEPTH = 1_000
MARK = "@@"  # where a text that is no JSON of ours is put


Inside = tuple[tuple[str, ...], bool, Any, int]  # the fields of a place in a body


@dataclass(frozen=True, slots=True)
class Place:
    """A text or a list in a request."""

    method: str
    path: str  # with its parameters in braces
    where: str  # "query", "path" or "body"
    name: tuple[str, ...]  # keys of the body that lead there
    is_list: bool
    of: Any = None  # what a list holds
    most: int = 0  # characters or entries that the description allows; 0 where it says nothing

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.where} {'.'.join(self.name)}"


def places(described: dict[str, Any]) -> Iterator[Place]:
    """Every text and every list of a description."""
    for path, calls in described["paths"].items():
        for method, call in calls.items():
            for each in call.get("parameters", ()):
                if is_text(each["schema"]):
                    most = each["schema"].get("maxLength", 0)
                    yield Place(method, path, each["in"], (each["name"],), False, most=most)
            content = call.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            if schema:
                for name, is_list, of, most in inside(schema, described, 0):
                    yield Place(method, path, "body", name, is_list, of, most)


def is_text(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "string" or any(map(is_text, schema.get("anyOf", ())))


def inside(schema: Any, described: Any, depth: int) -> Iterator[Inside]:
    """Texts and lists of a body, three levels deep, with the keys that lead there."""
    for name, held in resolved(schema, described).get("properties", {}).items():
        for way in [held, *held.get("anyOf", ())]:
            yield from _of_one(name, resolved(way, described), described, depth)


def _of_one(name: str, way: Any, described: Any, depth: int) -> Iterator[Inside]:
    if way.get("type") == "string" and "enum" not in way:
        yield (name,), False, None, way.get("maxLength", 0)
    elif way.get("type") == "array":
        of = example(way.get("items", {}), described)
        yield (name,), True, of, way.get("maxItems", 0)
        yield from _below((name, "0"), way.get("items", {}), described, depth)
    elif way.get("properties"):
        yield from _below((name,), way, described, depth)
    elif way.get("type") == "object" or not way:
        yield (name,), True, None, 0


def _below(keys: tuple[str, ...], schema: Any, described: Any, depth: int) -> Iterator[Inside]:
    for more, is_list, of, most in inside(schema, described, depth + 1) if depth < 2 else ():
        yield (*keys, *more), is_list, of, most


def resolved(schema: Any, described: Any) -> Any:
    if "$ref" in schema:
        return resolved(
            described["components"]["schemas"][schema["$ref"].split("/")[-1]], described
        )
    if len(schema.get("allOf", ())) == 1:
        return resolved(schema["allOf"][0], described)
    return schema


def example(schema: Any, described: Any) -> Any:
    """Something that the description allows there."""
    schema = resolved(schema, described)
    if "anyOf" in schema:
        return example(schema["anyOf"][0], described)
    told = [schema.get("default"), schema.get("const"), *schema.get("enum", ())]
    told = [each for each in told if each is not None]
    return told[0] if told else _example_of(schema, described)


def _example_of(schema: Any, described: Any) -> Any:
    held = schema.get("properties", {})
    wanted = {*schema.get("required", ()), *(SAID.keys() & held.keys())}
    match schema.get("type"):
        case "string":
            return "revenue by region"
        case "integer" | "number":
            return int(schema.get("minimum", 1))
        case "boolean":
            return True
        case "array":
            return [example(schema.get("items", {}), described)]
        case "object":
            return {n: SAID.get(n) or example(held[n], described) for n in held if n in wanted}
    return None


def body_with(place: Place, value: Any, described: dict[str, Any]) -> Any:
    """A body as the call wants it, with the value in its place."""
    call = described["paths"][place.path][place.method]
    schema = call["requestBody"]["content"]["application/json"]["schema"]
    whole = example(schema, described)
    return _put(whole if isinstance(whole, dict) else {}, place.name, value, schema, described)


def _put(held: Any, keys: tuple[str, ...], value: Any, schema: Any, described: Any) -> Any:
    held, (key, *rest) = held if isinstance(held, dict) else {}, keys
    if not rest:
        return {**held, key: value}
    way = resolved(resolved(schema, described)["properties"][key], described)
    ways = [resolved(each, described) for each in way.get("anyOf", (way,))]
    way = next(each for each in ways if each.get("properties") or each.get("items"))
    if rest[0] != "0":
        return {**held, key: _put(held.get(key), tuple(rest), value, way, described)}
    item = example(way["items"], described)
    return {**held, key: [_put(item, tuple(rest[1:]), value, way["items"], described)]}


def nested(depth: int) -> Any:
    """Lists in each other, as text: Python would not write so many."""
    return "[" * depth + "]" * depth


def as_text(body: Any) -> str:
    return json.dumps(body)
