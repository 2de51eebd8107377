"""JSON bodies read strictly: what is broken says how, instead of reading as nothing."""

import json
from typing import Any

from flask import Request
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

MAX_JSON_BYTES = 32 * 1024 * 1024
SHOWN_CHARS = 60  # of a value that was refused
SAID_ONLY: dict[type, str] = {dict: "an object", list: "a list"}


def came(value: Any) -> str:
    """A value of a body, so that whoever sent it knows it again; "" for what is none."""
    if isinstance(value, str) and len(value) > SHOWN_CHARS:
        return f"a text of {len(value):,} characters"
    if isinstance(value, str | int | float | None):
        return json.dumps(value)
    return SAID_ONLY.get(type(value), "")


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
