"""What one request works with: the application, and its JSON, read strictly.

Python reads JSON in one step, in which nobody else is served, and lists of lists take thirty times
the memory of their text. So a long body is read value by value, and its values are counted.
"""

import json
import math
import re
from collections.abc import Callable
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, NoReturn, cast

from flask import Request, current_app
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

from rag.errors import NotFound
from rag.records import ContextConfig

if TYPE_CHECKING:
    from rag.wiring.application import Application

EXTENSION = "groundnote"


def application() -> "Application":
    """What `create_app` was given."""
    return cast("Application", current_app.extensions[EXTENSION])


def default_config() -> ContextConfig:
    """How a new session keeps its context small, unless its maker says otherwise."""
    settings = application().settings
    return ContextConfig(
        enabled=settings.summarization_settings.enabled,
        compression_strategy=settings.context.compression_strategy,
        recent_message_count=settings.context.recent_message_count,
    )


def checked_id(text: str, kind: str) -> str:
    """The id, if it can be one; what cannot be an id names nothing. Raises NotFound."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", text):
        raise NotFound(f"There is no {kind} {text[:60]!r}.")
    return text


MAX_JSON_BYTES = 32 * 1024 * 1024
LONG_CHARS = 100_000  # up to so many are read in one step
MOST_VALUES = 500_000  # the longest transcript that may be brought along has 130,000
_HALF = re.compile("[\ud800-\udfff]")  # of a character
LONGEST_QUOTE = 60  # of a value that was refused
TYPE_NAMES: dict[type, str] = {dict: "an object", list: "a list"}


def came(value: Any) -> str:
    """A value of a body, so that whoever sent it knows it again; "" for what is none."""
    if isinstance(value, str) and len(value) > LONGEST_QUOTE:
        return f"a text of {len(value):,} characters"
    if isinstance(value, str | int | float | None):
        return json.dumps(value)
    return TYPE_NAMES.get(type(value), "")


class StepwiseParser(json.JSONDecoder):
    """Reads value by value, so that other threads go on, and no more than a bounded number."""

    def __init__(self, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> None:
        super().__init__(parse_constant=no_number, parse_float=finite, object_hook=object_hook)
        self._read = 0
        self.parse_object, self.parse_array = self._object, self._array
        self.scan_once = py_make_scanner(self)

    def _object(
        self, begun: tuple[str, int], strict: bool, scan: Callable[..., Any], *hooks: Any
    ) -> Any:
        return JSONObject(begun, strict, self._counted(scan), *hooks)

    def _array(self, begun: tuple[str, int], scan: Callable[..., Any]) -> Any:
        return JSONArray(begun, self._counted(scan))

    def _counted(self, scan: Callable[..., Any]) -> Callable[..., Any]:
        def one(text: str, position: int) -> Any:
            self._read += 1
            if self._read > MOST_VALUES:
                raise ValueError(f"it has more than {MOST_VALUES:,} values")
            return scan(text, position)

        return one


def no_number(name: str) -> NoReturn:
    """What Python would write and read, and JSON does not know."""
    raise ValueError(f"{name} is no number in JSON")


def whole_keys(members: dict[str, Any]) -> dict[str, Any]:
    """Half a character in a value becomes a sign for it; no key has one. Raises ValueError."""
    for key in members:
        if _HALF.search(key):
            raise ValueError(f"the key {key[:LONGEST_QUOTE]!a} holds half a character")
    return members


def finite(written: str) -> float:
    """`1e999` would be written as no JSON again. Raises ValueError."""
    number = float(written)
    if math.isinf(number):
        raise ValueError(f"{written[:LONGEST_QUOTE]} is larger than any number that is kept")
    return number


class StrictJson:
    """How a request reads its body. Raises ValueError."""

    @staticmethod
    def loads(body: str | bytes) -> Any:
        text = body if isinstance(body, str) else body.decode()
        hook = whole_keys if "\\ud" in text.lower() else None  # which halves begin with
        if len(text) > LONG_CHARS:
            return StepwiseParser(hook).decode(text)
        return json.loads(text, parse_constant=no_number, parse_float=finite, object_hook=hook)


class JsonRequest(Request):
    """A request whose JSON body is an object, or absent and then an empty one."""

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        """flask-openapi3 asks silently, which would hide what is wrong with a body.

        Raises:
            UnsupportedMediaType: there is a body of another kind.
            BadRequest: the body is not JSON, or not an object.
        """
        if self.content_length is None or self.content_length > MAX_JSON_BYTES:
            self.max_content_length = MAX_JSON_BYTES
        if not self.is_json:
            if self.get_data(cache=True):
                raise UnsupportedMediaType(
                    f"The body is {self.mimetype or 'of no stated kind'}; expected JSON with "
                    "Content-Type: application/json."
                )
            return {}
        return self._object(cache)

    def _object(self, cache: bool) -> dict[str, Any]:
        if not self.get_data(cache=True).strip():
            return {}
        self.json_module = StrictJson  # Flask gives each request its own
        try:
            body = super().get_json(cache=cache)
        except RecursionError as error:
            raise BadRequest("The JSON of the body is nested too deeply.") from error
        if not isinstance(body, dict):
            raise BadRequest(
                f'The body is {came(body)}; expected a JSON object such as {{"content": "…"}}.'
            )
        return body

    def on_json_loading_failed(self, e: ValueError | None) -> Any:
        raise BadRequest(f"The body is not valid JSON: {e}.")
