"""JSON bodies read strictly: what is broken says how, instead of reading as nothing."""

from typing import Any

from flask import Request
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

MAX_JSON_BYTES = 32 * 1024 * 1024


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
                f"The body is a JSON {type(body).__name__}; expected an object such as "
                '{"content": "…"}.'
            )
        return body

    def on_json_loading_failed(self, e: ValueError | None) -> Any:
        raise BadRequest(f"The body is not valid JSON: {e}.")
