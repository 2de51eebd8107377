"""What one request works with: the application, and the strict reading of its JSON.

Python reads JSON in one step, during which no other thread runs, and lists of lists take thirty
times the memory of their text. So a long body is read value by value, and its values are counted.
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
    """Return the application that `create_app` was given."""
    return cast("Application", current_app.extensions[EXTENSION])


def default_config() -> ContextConfig:
    """Return how a new session keeps its context small, unless its creator says otherwise."""
    settings = application().settings
    return ContextConfig(
        enabled=settings.summarization_settings.enabled,
        compression_strategy=settings.context.compression_strategy,
        recent_message_count=settings.context.recent_message_count,
    )


def checked_id(text: str, kind: str) -> str:
    """Return the id if its form is that of an id. Raises NotFound."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", text):
        raise NotFound(f"There is no {kind} {text[:60]!r}.")
    return text


MAX_JSON_BYTES = 32 * 1024 * 1024
LONG_CHARS = 100_000  # a body of at most so many is read in one step
MOST_VALUES = 500_000  # the longest transcript that may be imported has 130,000
_HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate
LONGEST_QUOTE = 60  # of a refused value
TYPE_NAMES: dict[type, str] = {dict: "an object", list: "a list"}


def came(value: Any) -> str:
    """Return a refused value as its sender recognises it, shortened; "" for other types."""
    if isinstance(value, str) and len(value) > LONGEST_QUOTE:
        return f"a text of {len(value):,} characters"
    if isinstance(value, str | int | float | None):
        return json.dumps(value)
    return TYPE_NAMES.get(type(value), "")


class StepwiseParser(json.JSONDecoder):
    """A JSON decoder that lets other threads run between values, and limits their number."""

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
    """Refuse NaN and Infinity, which Python reads and JSON does not know. Raises ValueError."""
    raise ValueError(f"{name} is no number in JSON")


def whole_keys(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members. Raises ValueError if a key holds a lone surrogate."""
    for key in members:
        if _HALF.search(key):
            raise ValueError(f"the key {key[:LONGEST_QUOTE]!a} holds half a character")
    return members


def finite(written: str) -> float:
    """Return the number; `1e999` could not be written as JSON again. Raises ValueError."""
    number = float(written)
    if math.isinf(number):
        raise ValueError(f"{written[:LONGEST_QUOTE]} is larger than any number that is kept")
    return number


class StrictJson:
    """Reads the body of a request. Raises ValueError."""

    @staticmethod
    def loads(body: str | bytes) -> Any:
        text = body if isinstance(body, str) else body.decode()
        hook = whole_keys if "\\ud" in text.lower() else None  # surrogates may be in it
        if len(text) > LONG_CHARS:
            return StepwiseParser(hook).decode(text)
        return json.loads(text, parse_constant=no_number, parse_float=finite, object_hook=hook)


class JsonRequest(Request):
    """A request whose JSON body is an object, or absent and then an empty one."""

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        """Return the JSON body; flask-openapi3 asks for it silently, which would hide its errors.

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
        if not self.get_data(cache=True).strip():
            return {}
        self.json_module = StrictJson  # on the instance: Flask's default is shared
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
