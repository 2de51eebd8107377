"""Scripted conversations, version 1: what is asked and done, and what must hold.

Turns are counted from 1, whatever they do. `rag.regression.script_file` reads them from files.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, Tag

from rag.errors import UserError
from rag.records import ContextConfig, Verdict

VERSION = 1
VerdictName = Literal["supported", "computed", "contradicted", "off_subject", "open", "unsourced"]
assert set(get_args(VerdictName)) == {each.value for each in Verdict}
NonEmpty = Annotated[str, Field(min_length=1)]
TurnNumber = Annotated[int, Field(ge=1, strict=True)]
Tokens = Annotated[int, Field(ge=1, strict=True)]


class Strict(BaseModel):
    """Knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CitedPlace(Strict):
    """A document, and the place in it."""

    document: NonEmpty
    place: NonEmpty = Field(description='Words of where it stands, such as "page 3" or "1.1".')


class SameNumber(Strict):
    """The source that an earlier turn cited from a document keeps its number."""

    turn: TurnNumber
    source: NonEmpty


class Expectations(Strict):
    """What must hold of an answer."""

    cites: tuple[NonEmpty | CitedPlace, ...] = Field((), description="Documents that it cites.")
    says: tuple[NonEmpty, ...] = Field((), description="Words in a row, whatever their case.")
    says_not: tuple[NonEmpty, ...] = ()
    resolves_to: NonEmpty | None = Field(
        None, description="Words that the question has once it stands alone."
    )
    follow_up: StrictBool | None = None
    declines: StrictBool | None = Field(None, description="Whether it says that nothing answers.")
    verdicts: Annotated[tuple[VerdictName, ...], Field(min_length=1)] | None = Field(
        None, description="Each of its citations has one of these."
    )
    computes: NonEmpty | None = Field(None, description="A value of the table that it shows.")
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

    words: NonEmpty
    turn: TurnNumber | None = None
    source: NonEmpty | None = Field(None, description="The document, where the turn cites several.")


class Recalled(Strict):
    """Words of an earlier turn that a model would be sent again for a question."""

    ask: NonEmpty
    turn: TurnNumber
    words: NonEmpty


class Compress(Strict):
    """All turns but the newest are summarised; fails where there is nothing to summarise."""

    compress: Literal[True]
    states: tuple[WantedStatement, ...] = ()
    keeps_sources_of: tuple[TurnNumber, ...] = Field(
        (), description="Turns whose every number is in the summary."
    )
    keeps_names_of: tuple[TurnNumber, ...] = Field(
        (), description="Turns whose every product name is in the summary."
    )
    recalls: tuple[Recalled, ...] = ()
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
        """The configuration with these changes."""
        return ContextConfig(**(_fields(config) | self.model_dump(exclude_none=True)))


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
    """What a turn does; None where it does nothing known, or two things."""
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
    """What editors check files by; it is kept beside this module."""
    made = Script.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | made


def documents_of(script: Script, path: Path) -> Path:
    """The folder that `documents` names: beside the script, beside its folder, or a path.

    Raises:
        UserError: there is no such folder.
    """
    near = [path.parent / script.documents, path.parent.parent / script.documents]
    for folder in (*near, Path(script.documents)):
        if folder.is_dir():
            return folder.resolve()
    looked = ", ".join(str(folder) for folder in near)
    raise UserError(f'{path}: there is no folder of documents "{script.documents}" ({looked}).')


def _fields(config: ContextConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in ContextConfig.__dataclass_fields__}
