"""Our APIs: what programs are sent, and a description that is made when somebody asks for it."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from flask import Response
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag
from flask_openapi3.openapi import OpenAPI
from flask_openapi3.types import ResponseDict
from flask_openapi3.utils import parse_parameters
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python

from rag.web.problems import REFUSALS

# What people and clients are told of such a field: it is not Markdown, whatever it looks like.
PLAIN_TEXT = "A document's own words, as plain text: to be shown as they are, never rendered."


class Described(BaseModel):
    """What programs are sent, made of records whose fields have the same names, or an alias."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    @classmethod
    def of(cls, record: Any = None, **more: Any) -> Self:
        """With `more` fields, or others than the record's; all may hold records themselves."""
        return cls.model_validate(to_jsonable_python(record or {}) | to_jsonable_python(more))

    def as_json(self) -> dict[str, Any]:
        """In plain JSON."""
        return self.model_dump(mode="json")


class DescribedApi(APIBlueprint):
    """Calls that remember how they are to be described: that takes a fifth of a start."""

    def __init__(
        self,
        name: str,
        says: str = "",
        *,
        prefix: str = "/api/v1",
        tag: str = "",
        refusals: ResponseDict = REFUSALS,
    ) -> None:
        """`says` describes the tag; `refusals` may answer each call."""
        super().__init__(
            name,
            __name__,
            url_prefix=prefix or None,
            abp_tags=[Tag(name=tag or name, description=says or None)],
            abp_responses=refusals,
        )
        self._undescribed: list[Callable[[], Any]] = []
        self._lock = threading.Lock()

    def _collect_openapi_info(
        self, rule: str, func: Callable[..., Any], **described: Any
    ) -> tuple[Any, ...]:
        collect = super()._collect_openapi_info
        self._undescribed.append(partial(collect, rule, func, **described))
        types: tuple[Any, ...] = parse_parameters(func, doc_ui=False)
        return types

    def describe(self) -> None:
        """Fill in tags, paths and schemas."""
        with self._lock:
            while self._undescribed:
                self._undescribed.pop(0)()


class DescribedApp(OpenAPI):
    """Answers with models, and takes the descriptions of its APIs when its own is made."""

    def make_response(self, rv: Any) -> Response:
        """A model, alone or before a status, becomes JSON."""
        body, rest = (rv[0], rv[1:]) if isinstance(rv, tuple) else (rv, ())
        plain = body.as_json() if isinstance(body, Described) else body
        return super().make_response((plain, *rest) if rest else plain)

    def generate_spec_json(self) -> None:
        for api in self.blueprints.values():
            if isinstance(api, DescribedApi):
                api.describe()
                names = {tag.name for tag in self.tags}
                self.tags.extend(tag for tag in api.tags if tag.name not in names)
                self.paths.update(api.paths)
                self.components_schemas.update(api.components_schemas)
        super().generate_spec_json()  # type: ignore[no-untyped-call]
