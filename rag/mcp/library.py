"""The JSON API as tools of the protocol see it: of a running server, or of an application here.

Rights, limits and errors are the API's own, since every call goes through it with the token of
whoever calls.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from rag.llm.discovery import SecretBox
from rag.wiring.listeners import relayed

if TYPE_CHECKING:  # Flask is loaded only where the application is here
    from flask import Flask

CLIENT = "x-groundnote-asked-from"  # within our own server: the address of who asks
TIMEOUT = httpx.Timeout(30, read=None)  # an answer takes as long as a model takes
UNREACHED = "The Groundnote server at {url} cannot be reached ({error}). Start `groundnote serve`."


class Refused(Exception):
    """The API refused a call; the message is fit to be read by a person or a model."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Asker(NamedTuple):
    """Who calls: with what token, from where."""

    token: str = ""
    address: str = ""  # "" over standard input


def bearer_of(header: str | None) -> str:
    """The token of an Authorization header."""
    kind, _, token = (header or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


class LibraryApi:
    """Calls of the JSON API. Each raises Refused."""

    def __init__(
        self,
        url: str,
        *,
        app: "Flask | None" = None,
        secrets: SecretBox | None = None,
        public_url: str | None = None,
    ) -> None:
        """Of the server at `url`, or of `app` where it is given; links lead to its public address.

        With its `secrets` it is told from where each call comes, for wrong tokens are counted so.
        """
        self._secrets = secrets
        transport = httpx.WSGITransport(app=app) if app is not None else None
        self.url, server = (public_url or url).rstrip("/"), url.rstrip("/")
        self._http = httpx.Client(base_url=f"{server}/api/v1", timeout=TIMEOUT, transport=transport)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, asker: Asker, **params: Any) -> Any:
        return self._call("GET", path, asker, params=params)

    def post(self, path: str, asker: Asker, **body: Any) -> Any:
        """Without what is None."""
        given = {key: value for key, value in body.items() if value is not None}
        return self._call("POST", path, asker, json=given)

    def delete(self, path: str, asker: Asker) -> None:
        self._call("DELETE", path, asker)

    def _call(self, method: str, path: str, asker: Asker, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {asker.token}"} if asker.token else {}
        if self._secrets is not None and asker.address:
            headers |= relayed(asker.address, self._secrets)
        try:
            answer = self._http.request(method, path, headers=headers, **options)
        except httpx.HTTPError as error:
            raise Refused(UNREACHED.format(url=self.url, error=error), status=503) from error
        if answer.is_error:
            raise Refused(_problem(answer), status=answer.status_code)
        return answer.json() if answer.content else None


def _problem(answer: httpx.Response) -> str:
    try:
        told = answer.json()
    except ValueError:
        return f"The server answered with status {answer.status_code}."
    detail = told.get("detail") if isinstance(told, dict) else None
    return str(detail or f"The server answered with status {answer.status_code}.")
