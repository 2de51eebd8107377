"""An API whose description is made when somebody asks for it: that takes a fifth of a start."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.openapi import OpenAPI
from flask_openapi3.utils import parse_parameters


class DescribedApi(APIBlueprint):
    """Calls that remember how they are to be described."""

    def __init__(self, name: str, import_name: str, **options: Any) -> None:
        super().__init__(name, import_name, **options)
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
    """Takes the descriptions of its APIs when its own is made."""

    def generate_spec_json(self) -> None:
        for api in self.blueprints.values():
            if isinstance(api, DescribedApi):
                api.describe()
                self.tags.extend(tag for tag in api.tags if tag not in self.tags)
                self.paths.update(api.paths)
                self.components_schemas.update(api.components_schemas)
        super().generate_spec_json()  # type: ignore[no-untyped-call]
