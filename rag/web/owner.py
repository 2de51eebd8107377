"""Who the caller is: everybody alike, the bearer of a token, or whom the proxy in front names."""

import hashlib
from collections.abc import Callable, Mapping

from flask import Flask, current_app, g, request, session
from flask.sessions import SecureCookieSessionInterface

from rag.errors import NotAllowed, SetupError
from rag.settings import Settings

EXTENSION = "groundnote-owners"
TOKEN_KEY = "token"  # in the signed cookie: stands for the token given at login
DIGEST_PREFIX = "sha256:"

FindOwner = Callable[[], str]


def current_owner() -> str:
    """The owner of what this request may see. Raises NotAllowed."""
    if "owner" not in g:
        g.owner = current_app.extensions[EXTENSION]()
    return str(g.owner)


def is_cookie_caller() -> bool:
    """Whether the browser's cookie says who this is, so that a foreign page could abuse it."""
    return not request.headers.get("Authorization") and TOKEN_KEY in session


class TokenOwners:
    """Owners by the bearer tokens of the settings; `sha256:…` is the digest of an unwritten one."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        if not tokens:
            raise SetupError(
                'auth.mode is "tokens", but auth.tokens is empty. Give at least one: '
                '{"auth": {"tokens": {"<a long random token>": "<its owner>"}}}.'
            )
        if not all(token.strip() and owner.strip() for token, owner in tokens.items()):
            raise SetupError(
                "auth.tokens has an empty token or owner, which would let anybody in. Remove it."
            )
        self._by_digest = {_digest_of(token): owner for token, owner in tokens.items()}
        self._by_cookie = {_in_cookie(known): owner for known, owner in self._by_digest.items()}

    def __call__(self) -> str:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind:
            return self.owner_of(token.strip() if kind.lower() == "bearer" else "")
        owner = self._by_cookie.get(session.get(TOKEN_KEY, ""))
        if owner is None:
            raise NotAllowed("Please log in, or send your token as `Authorization: Bearer …`.")
        return owner

    def owner_of(self, token: str) -> str:
        """Raises NotAllowed. Compared by digest, so that the time taken tells nothing."""
        owner = self._by_digest.get(digest(token))
        if owner is None:
            raise NotAllowed("This token is not known. Ask whoever runs this server for one.")
        return owner

    @property
    def cookie_key(self) -> str:
        """Signs cookies: the same on every host with the same tokens, other when they change."""
        return digest("key of cookies:" + ",".join(sorted(self._by_digest)))


def _in_cookie(known: str) -> str:
    """A cookie can be read by whoever has it: it must not hold what signs cookies."""
    return digest("cookie:" + known)


def digest(token: str) -> str:
    """Stands for a token wherever it is kept."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _digest_of(configured: str) -> str:
    if configured.startswith(DIGEST_PREFIX):
        return configured.removeprefix(DIGEST_PREFIX).lower()
    return digest(configured)


class CookieSessions(SecureCookieSessionInterface):
    """Signed cookies that stay on TLS where they were set over it."""

    def get_cookie_secure(self, app: Flask) -> bool:
        return request.is_secure


def has_login() -> bool:
    """Whether callers can log in with a token."""
    return isinstance(current_app.extensions[EXTENSION], TokenOwners)


def remember_token(token: str) -> None:
    """Log a browser in with a signed cookie. Raises NotAllowed."""
    owners = current_app.extensions[EXTENSION]
    if not isinstance(owners, TokenOwners):
        raise NotAllowed("There is nothing to log in to: this server knows its callers otherwise.")
    owners.owner_of(token)
    session[TOKEN_KEY] = _in_cookie(digest(token))
    session.permanent = True


def forget_token() -> None:
    """Log a browser out."""
    session.pop(TOKEN_KEY, None)


def find_owners(app: Flask, settings: Settings) -> None:
    """Decide how callers are known."""
    app.session_interface = CookieSessions()
    match settings.auth.mode:
        case "tokens":
            owners = TokenOwners(settings.auth.tokens)
            app.secret_key = owners.cookie_key
            app.extensions[EXTENSION] = owners
        case "proxy":
            app.extensions[EXTENSION] = named_by_header(settings.auth.proxy_header)
        case "single":
            owner = settings.sessions.default_owner
            app.extensions[EXTENSION] = lambda: owner


def named_by_header(name: str) -> FindOwner:
    """Trust the proxy in front: it must overwrite this header in every request."""

    def find() -> str:
        owner = request.headers.get(name, "").strip()
        if not owner or len(owner) > 200:
            raise NotAllowed(f"The proxy in front of this server must name the caller in {name}.")
        return owner

    return find
