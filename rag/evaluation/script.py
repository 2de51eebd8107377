"""Scripted conversations: what is asked, and what must hold."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rag.errors import UserError

Words = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SameNumber(_Strict):
    """The source that an earlier turn cited from a document keeps its number."""

    turn: int = Field(ge=1)
    source: Words


class ScriptedTurn(_Strict):
    """One question with its expectations, or one compaction. Turns count from 1."""

    ask: Words | None = None
    cites: tuple[Words, ...] = ()  # names of documents
    says: tuple[Words, ...] = ()  # words of the answer, ignoring case
    says_not: tuple[Words, ...] = ()
    resolves_to: Words | None = None  # words that the resolved question must hold
    same_number_as: SameNumber | None = None
    declines: bool | None = None
    compress: bool = False
    keeps_sources_of: tuple[int, ...] = ()  # turns whose numbers the context still holds

    @model_validator(mode="after")
    def _does_one_thing(self) -> "ScriptedTurn":
        if (self.ask is None) == (not self.compress):
            raise ValueError('a turn either has "ask" or says "compress": true')
        return self


class Script(_Strict):
    """A conversation that is replayed as a regression test."""

    title: Words
    documents: Words
    turns: tuple[ScriptedTurn, ...] = Field(min_length=1)


def read_script(path: Path) -> Script:
    """Read and check one file.

    Raises:
        UserError: it is missing, not JSON or not a script; names the place.
    """
    try:
        return Script.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        raise UserError(f"{path} is no scripted conversation. {problems_of(error)}.") from error
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON: {error}.") from error


def problems_of(error: ValidationError) -> str:
    """What is wrong with a file, place by place."""
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'file'}: {problem['msg']}"
        for problem in error.errors()
    )


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
