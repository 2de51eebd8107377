"""The JSON API as tools of the protocol see it: of a running server, or of an application here.

Rights, limits and errors are the API's own, since every call goes through it with the token of
whoever calls.
"""

from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:  # Flask is loaded only where the application is here
    from flask import Flask

TIMEOUT = httpx.Timeout(30, read=None)  # an answer takes as long as a model takes
UNREACHED = "The Groundnote server at {url} cannot be reached ({error}). Start `groundnote serve`."


class Refused(Exception):
    """The API refused a call; the message is fit to be read by a person or a model."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class LibraryApi:
    """Calls of the JSON API. Each raises Refused."""

    def __init__(self, url: str, *, app: "Flask | None" = None) -> None:
        """Of the server at `url`, or of `app` where it is given."""
        transport = httpx.WSGITransport(app=app) if app is not None else None
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1", timeout=TIMEOUT, transport=transport
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, token: str, **params: Any) -> Any:
        return self._call("GET", path, token, params=params)

    def post(self, path: str, token: str, **body: Any) -> Any:
        """Without what is None."""
        given = {key: value for key, value in body.items() if value is not None}
        return self._call("POST", path, token, json=given)

    def _call(self, method: str, path: str, token: str, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            answer = self._http.request(method, path, headers=headers, **options)
        except httpx.HTTPError as error:
            raise Refused(UNREACHED.format(url=self.url, error=error), status=503) from error
        if answer.is_error:
            raise Refused(_problem(answer), status=answer.status_code)
        return answer.json()


def _problem(answer: httpx.Response) -> str:
    try:
        told = answer.json()
    except ValueError:
        return f"The server answered with status {answer.status_code}."
    detail = told.get("detail") if isinstance(told, dict) else None
    return str(detail or f"The server answered with status {answer.status_code}.")
