"""Scripted conversations, version 1: their questions, actions and expectations.

Turns are counted from 1, whatever their action. YAML is read by version 1.2, in which `no`, `12:30`
and `2026-01-01` are strings.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    ValidationError,
)

from rag.citations.markers import without_markers
from rag.errors import UserError
from rag.records import ContextConfig, Verdict

VerdictName = Literal["supported", "computed", "contradicted", "off_subject", "open", "unsourced"]
CITATION_VERDICTS = frozenset(get_args(VerdictName)) - {"unsourced"}  # that is a statement's
assert set(get_args(VerdictName)) == {each.value for each in Verdict}
NonEmpty = Annotated[str, Field(min_length=1)]


def flat(text: str) -> str:
    """Return text in a form for finding phrases: without case, emphasis and extra blanks."""
    return " ".join(text.replace("*", "").casefold().split())


def _checked_phrase(words: str) -> str:
    """Raises ValueError for words that every text contains, or none."""
    if not flat(words):
        raise ValueError(f"{json.dumps(words)} stands in every text; words were expected")
    if without_markers(words) != words:
        raise ValueError(
            f"{json.dumps(words)} holds a number, and numbers are set apart from words; "
            'name documents by "cites" and "same_number_as"'
        )
    return words


def _checked_words(words: str) -> str:
    """Raises ValueError for text without a word, which every question contains."""
    if not re.search(r"\w", words):
        raise ValueError(f"{json.dumps(words)} has no word; words were expected")
    return words


Phrase = Annotated[NonEmpty, AfterValidator(_checked_phrase)]
Entry = TypeVar("Entry")
Entries = Annotated[tuple[Entry, ...], Field(min_length=1)]  # one that is empty checks nothing
TurnNumber = Annotated[int, Field(ge=1, strict=True)]
Tokens = Annotated[int, Field(ge=1, strict=True)]


class Strict(BaseModel):
    """Knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CitedPlace(Strict):
    """A document, and the place in it."""

    document: NonEmpty
    place: Phrase = Field(description='Words of where it stands, such as "page 3" or "1.1".')


class SameNumber(Strict):
    """The source that an earlier turn cited from a document keeps its number."""

    turn: TurnNumber
    source: NonEmpty


class Expectations(Strict):
    """What must hold of an answer."""

    cites: Entries[NonEmpty | CitedPlace] = Field((), description="Documents that it cites.")
    says: Entries[Phrase] = Field((), description="Words in a row, whatever their case.")
    says_not: Entries[Phrase] = ()
    resolves_to: Annotated[NonEmpty, AfterValidator(_checked_words)] | None = Field(
        None, description="Words that the question has once it stands alone."
    )
    follow_up: StrictBool | None = None
    declines: StrictBool | None = Field(None, description="Whether it says that nothing answers.")
    verdicts: Entries[VerdictName] | None = Field(
        None, description="Each of its citations has one of these."
    )
    computes: Phrase | None = Field(None, description="A value of the table that it shows.")
    same_number_as: SameNumber | None = None
    within_tokens: Tokens | None = Field(
        None, description="What a model would be sent after this turn takes at most so many."
    )


class Ask(Expectations):
    """A question."""

    ask: NonEmpty
    edit: TurnNumber | None = Field(
        None, description="The turn whose question it takes the place of, in a branch."
    )


class Regenerate(Expectations):
    """The last answer is written anew."""

    regenerate: Literal[True]


class WantedStatement(Strict):
    """Words that stand in the summary, beside a number of a turn, if one is named."""

    words: Phrase
    turn: TurnNumber | None = None
    source: NonEmpty | None = Field(None, description="The document, where the turn cites several.")


class Recalled(Strict):
    """Words of an earlier turn that a model would be sent again for a question."""

    ask: NonEmpty
    turn: TurnNumber
    words: Phrase


class Compress(Strict):
    """All turns but the newest are summarised; fails where there is nothing to summarise."""

    compress: Literal[True]
    states: Entries[WantedStatement] = ()
    keeps_sources_of: Entries[TurnNumber] = Field(
        (), description="Turns whose every number is in the summary."
    )
    keeps_names_of: Entries[TurnNumber] = Field(
        (), description="Turns whose every product name is in the summary."
    )
    recalls: Entries[Recalled] = ()
    within_tokens: Tokens | None = Field(None, description="What the summary takes at most.")


class BroughtMessage(Strict):
    """One message of an imported transcript."""

    role: Literal["user", "assistant", "system"]
    content: str


class BroughtSource(Strict):
    """A source behind a number of an imported transcript."""

    n: TurnNumber
    document: NonEmpty
    text: NonEmpty
    place: str = ""


class Import(Strict):
    """A transcript from elsewhere is brought along."""

    messages: Annotated[tuple[BroughtMessage, ...], Field(alias="import", min_length=1)]
    sources: tuple[BroughtSource, ...] = ()


class Restart(Strict):
    """A new process goes on with the same data."""

    restart: Literal[True]


class Configured(Strict):
    """How the conversation keeps its context small; what is left out stays as it is."""

    enabled: StrictBool | None = None
    max_tokens: Annotated[int, Field(ge=500, strict=True)] | None = None
    compression_strategy: Literal["smart", "sliding_window"] | None = None
    recent_message_count: Annotated[int, Field(ge=2, strict=True)] | None = None

    def changed(self, config: ContextConfig) -> ContextConfig:
        """Return the configuration with these changes."""
        return replace(config, **self.model_dump(exclude_none=True))


class SettingsStep(Strict):
    """The configuration of the conversation changes."""

    settings: Configured


class AddedDocument(Strict):
    """A document's name, with its text or the file it is in (beside the script)."""

    name: NonEmpty
    text: str | None = None
    file: NonEmpty | None = None


class Add(Strict):
    """A document is added, or takes the place of the one of its name."""

    add: AddedDocument


class Remove(Strict):
    """A document is deleted."""

    remove: NonEmpty


ACTIONS: dict[str, type[Strict]] = {
    "ask": Ask,
    "compress": Compress,
    "import": Import,
    "regenerate": Regenerate,
    "restart": Restart,
    "settings": SettingsStep,
    "add": Add,
    "remove": Remove,
}


def action_of(turn: Any) -> str | None:
    """Return a turn's action; None if it has no known action, or two."""
    results = [name for name in ACTIONS if isinstance(turn, dict) and name in turn]
    return results[0] if len(results) == 1 else None


ScriptTurn = Annotated[
    Annotated[Ask, Tag("ask")]
    | Annotated[Compress, Tag("compress")]
    | Annotated[Import, Tag("import")]
    | Annotated[Regenerate, Tag("regenerate")]
    | Annotated[Restart, Tag("restart")]
    | Annotated[SettingsStep, Tag("settings")]
    | Annotated[Add, Tag("add")]
    | Annotated[Remove, Tag("remove")],
    Discriminator(action_of),
]


class Script(Strict):
    """A conversation that is replayed as a test."""

    title: NonEmpty
    documents: NonEmpty = Field(description="A folder beside this file, or beside its folder.")
    turns: Annotated[tuple[ScriptTurn, ...], Field(min_length=1)]
    version: Literal[1] = 1
    settings: Configured = Configured()
    schema_named: str = Field("", alias="$schema", description="For editors.")

    @property
    def changes_documents(self) -> bool:
        """Whether it needs a library of its own."""
        return any(isinstance(turn, Add | Remove) for turn in self.turns)


def schema() -> dict[str, Any]:
    """Return the JSON schema for editors; a copy is stored beside this module."""
    made = Script.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | made


def documents_of(script: Script, path: Path) -> Path:
    """Return the script's documents folder: beside the script, beside its folder, or a path.

    Raises:
        UserError: There is no such folder.
    """
    near = [path.parent / script.documents, path.parent.parent / script.documents]
    for folder in (*near, Path(script.documents)):
        if folder.is_dir():
            return folder.resolve()
    looked = ", ".join(str(folder) for folder in near)
    raise UserError(f'{path}: there is no folder of documents "{script.documents}" ({looked}).')


ENDINGS = (".json", ".yaml", ".yml")
MOST_BYTES = 5_000_000
MOST_VALUES = 200_000  # in one file: with aliases a few lines can expand to billions
KeyPath = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)
PLAIN = {"null": None, "~": None, "": None, "true": True, "false": False}
NUMBER = re.compile(r"[-+]?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
SURROGATES = re.compile(r"(?:\\u[dD][89a-fA-F][0-9a-fA-F]{2})+")  # escaped, in JSON
SINGLE_QUOTES = re.compile(r"'(.+?)'")


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A file with its values, and the line of each value."""

    path: Path
    data: Any
    lines: Mapping[KeyPath, int] = field(default_factory=dict)  # from 1

    def error(self, place: KeyPath, message: str) -> UserError:
        """Return an error that names the file, line, turn and key of a place."""
        nearest = next(place[:n] for n in range(len(place), -1, -1) if place[:n] in self.lines)
        turn = f", turn {int(place[1]) + 1}" if _is_turn(place) else ""
        keys = [str(key) for key in place[2 if turn else 0 :] if isinstance(key, str)]
        where = f', "{keys[-1]}"' if keys else ""
        return UserError(f"{self.path}, line {self.lines[nearest]}{turn}{where}: {message}.")


def read_script(path: Path) -> tuple[Script, ScriptFile]:
    """Read and check one scripted conversation.

    Raises:
        UserError: It is missing or no script; names the line, the key and what was expected.
    """
    source = read_source(path)
    script = validated(Script, source)
    _check_turns(script, source)
    return script, source


def read_source(path: Path) -> ScriptFile:
    """Read the values of a JSON or YAML file. Raises UserError."""
    text = read_text(path)
    try:
        data = None
        if path.suffix == ".json":
            data = json.loads(text)
            text = SURROGATES.sub(_as_character, text)
        node = yaml.compose(text.replace("\t", " "), Loader=_MarkedYaml)
    except json.JSONDecodeError as error:
        problem = SINGLE_QUOTES.sub(r'"\1"', error.msg[:1].lower() + error.msg[1:])
        raise UserError(f"{path}, line {error.lineno}: not JSON; {problem}.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UserError(f"{path}, line {line}: not YAML; {error.problem}.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    lines: dict[KeyPath, int] = {(): 1}
    try:
        made = _Built(path, lines).value(node, ()) if node is not None else None
    except RecursionError as error:
        raise UserError(f"{path} holds something that holds itself, or too deep a list.") from error
    return ScriptFile(path, made if path.suffix != ".json" else data, lines)


def _as_character(escapes: re.Match[str]) -> str:
    """Write surrogates, which YAML does not know, as what they stand for, or as U+FFFD."""
    halves: str = json.loads(f'"{escapes[0]}"')
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_text(path: Path) -> str:
    """Read a text file in UTF-8. Raises UserError."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path} is larger than {MOST_BYTES:,} bytes; split it.")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8: {error}.") from error


# ── Values with their lines ──────────────────────────────────────────────────────────────────


class _MarkedYaml(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A YAML loader of which only the parser is used."""


@dataclass(slots=True)
class _Built:
    """Builds values from YAML nodes and records their lines."""

    path: Path
    lines: dict[KeyPath, int]
    count: int = 0

    def value(self, node: yaml.Node, place: KeyPath) -> Any:
        self.count += 1
        if self.count > MOST_VALUES:
            raise UserError(f"{self.path} holds more than {MOST_VALUES:,} values; split it.")
        self.lines[place] = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*place, index)) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return scalar(node.value, is_plain=not node.style)
        assert isinstance(node, yaml.MappingNode)
        results: dict[str, Any] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in results:
                raise UserError(f'{self.path}, line {line}, "{name}": this key stands twice.')
            results[name] = self.value(value, (*place, name))
            self.lines[*place, name] = line
        return results


def scalar(text: str, *, is_plain: bool) -> Any:
    """Parse a string, number, true, false or null by the core schema of YAML 1.2."""
    if not is_plain:
        return text
    if text.lower() in PLAIN:
        return PLAIN[text.lower()]
    if not NUMBER.fullmatch(text):
        return text
    return float(text) if {".", "e", "E"} & set(text) else int(text)


# ── What is wrong, in plain words ────────────────────────────────────────────────────────────


def validated(model: type[Model], source: ScriptFile) -> Model:
    """Return the values as a model. Raises UserError for the first few that are wrong."""
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        problems: list[tuple[KeyPath, str]] = []
        for detail in error.errors():
            kind = detail["type"]
            is_object = kind == "string_type" and isinstance(detail["input"], dict)
            if is_object or (kind == "too_short" and detail["input"]):
                continue  # it only follows from another alternative of the schema
            place, value = _place(detail["loc"], source.data, kind)
            problems.append((place, _problem_text(detail, value, place, source.data)))
        problems.sort(key=lambda problem: source.lines.get(problem[0], 0))
        messages = list(dict.fromkeys(str(source.error(*problem)) for problem in problems))
        raise UserError("\n".join(messages[:5])) from error


def _place(loc: Sequence[str | int], data: Any, kind: str) -> tuple[KeyPath, Any]:
    """Return the error's place in the file, without the validator's own steps."""
    place: list[str | int] = []
    if loc[:1] == ("turns",):
        loc = (*loc[:2], *loc[3:])  # the turn's action
    for index, step in enumerate(loc):
        is_there = (isinstance(data, dict) and step in data) or (
            isinstance(data, list) and isinstance(step, int) and step < len(data)
        )
        if is_there:
            data = data[step]
        if is_there or (index == len(loc) - 1 and kind == "missing"):
            place.append(step)
    return tuple(place), data


def _problem_text(problem: Mapping[str, Any], value: Any, place: KeyPath, data: Any) -> str:
    kind, limits = problem["type"], problem.get("ctx", {})
    literal = str(limits.get("expected")).replace("True", "true")
    if kind == "extra_forbidden":
        return "there is no such key here" + _nearest(place, data)
    if kind.startswith("union_tag"):
        return _actions(value)
    messages = {
        "missing": "this key is missing",
        "string_too_short": "some words were expected, nothing came",
        "too_short": "at least one entry was expected, none came",
        "string_type": f"words were expected, {_brief(value)} came; put it in quotes",
        "tuple_type": f"a list was expected, {_brief(value)} came; put it in square brackets",
        "greater_than_equal": f"{limits.get('ge')} or more was expected, {_brief(value)} came",
        "literal_error": f"{literal} was expected, {_brief(value)} came",
        "int_type": f"a whole number was expected, {_brief(value)} came",
        "bool_type": f"true or false was expected, {_brief(value)} came",
        "value_error": str(limits.get("error", "")).rstrip("."),
    }
    return messages.get(kind, f"an object with keys was expected, {_brief(value)} came")


def _nearest(place: KeyPath, data: Any) -> str:
    if len(place) > 3 or "turns" not in data:
        return ""
    turn = data["turns"][place[1]] if _is_turn(place) else {}
    model = next((ACTIONS[name] for name in ACTIONS if name in turn), Script)
    keys = [(info.alias or name) for name, info in model.model_fields.items()]
    near = difflib.get_close_matches(str(place[-1]), keys, n=1)
    if near:
        return f': "{near[0]}" is one'
    return f"; known are {', '.join(keys)}"


def _is_turn(place: KeyPath) -> bool:
    return len(place) > 1 and place[0] == "turns" and isinstance(place[1], int)


def _actions(turn: Any) -> str:
    if not isinstance(turn, dict):
        return f'a turn was expected, such as {{"ask": …}}, {_brief(turn)} came'
    named = [name for name in ACTIONS if name in turn]
    if len(named) > 1:
        return f"a turn does one thing, this one has {' and '.join(named)}; make two turns of it"
    near = [n for key in turn for n in difflib.get_close_matches(key, ACTIONS, n=1)]
    meant = f' ("{near[0]}", perhaps)' if near else ""
    return f"a turn needs one of {', '.join(ACTIONS)}{meant}"


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


# ── Turns that speak of others ───────────────────────────────────────────────────────────────

SPEAKING = Ask | Regenerate | Import  # of these others may speak


def _check_turns(script: Script, source: ScriptFile) -> None:
    newest = 0  # of the turns before that say something
    for index, turn in enumerate(script.turns):
        place: KeyPath = ("turns", index)
        for key, number in _turns_named_by(turn):
            _check_earlier(script, index, number, source, (*place, key))
            if isinstance(turn, Compress) and number == newest:
                message = f"turn {number} is the newest: it is not summarised, and stays as it was"
                raise source.error((*place, key), message)
        if isinstance(turn, Add) and (turn.add.text is None) == (turn.add.file is None):
            raise source.error((*place, "add"), 'it needs either "text" or "file"')
        for key, message in _aimless(turn):
            raise source.error((*place, key), message)
        is_first = not any(isinstance(earlier, Ask) for earlier in script.turns[:index])
        if isinstance(turn, Regenerate) and is_first:
            raise source.error((*place, "regenerate"), "nothing was asked before")
        newest = index + 1 if isinstance(turn, SPEAKING) else newest
    if not any(isinstance(turn, Ask | Compress) for turn in script.turns):
        raise source.error(("turns",), "nothing is asked or compressed, so that nothing is checked")


def _aimless(turn: ScriptTurn) -> Iterator[tuple[str, str]]:
    """Yield the keys of expectations that cannot fail or are never checked, and why."""
    if isinstance(turn, Ask | Regenerate) and set(turn.verdicts or ()) >= CITATION_VERDICTS:
        yield "verdicts", "every citation has one of these; leave out those that must not come"
    if isinstance(turn, Compress):
        for state in turn.states:
            if state.source is not None and state.turn is None:
                yield "states", f'"source" needs the "turn" that cites {state.source}'


def _turns_named_by(turn: ScriptTurn) -> Iterator[tuple[str, int]]:
    """Yield the turns that a turn refers to, with the key that does."""
    if isinstance(turn, Ask | Regenerate) and turn.same_number_as:
        yield "same_number_as", turn.same_number_as.turn
    if isinstance(turn, Compress):
        yield from (("states", state.turn) for state in turn.states if state.turn)
        yield from (("keeps_sources_of", number) for number in turn.keeps_sources_of)
        yield from (("keeps_names_of", number) for number in turn.keeps_names_of)
        yield from (("recalls", recall.turn) for recall in turn.recalls)


def _check_earlier(
    script: Script, position: int, number: int, source: ScriptFile, place: KeyPath
) -> None:
    if number > len(script.turns):
        raise source.error(place, f"there is no turn {number}: there are {len(script.turns)}")
    if number > position:
        raise source.error(place, f"turn {number} comes later; name an earlier one")
    named = script.turns[number - 1]
    if not isinstance(named, SPEAKING):
        raise source.error(place, f"turn {number} says nothing: it neither asks nor imports")
