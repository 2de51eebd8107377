"""Who the caller is: one owner for all, the owner who logged in, or the one a proxy names.

Forwarded headers are believed from addresses that `auth.trusted_proxies` names, in every mode. The
address of the connection itself is kept besides, because it decides who is believed.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flask import Flask, current_app, g, request
from sqlalchemy import Engine

from rag.db.audit_trail import AuditTrail, act
from rag.errors import NotAllowed, SetupError
from rag.llm.discovery import SecretBox
from rag.runtime.error_log import log_throttled
from rag.settings import AuthSettings, Settings
from rag.web.access.counters import GuessCounter, place_of_counters
from rag.web.access.logins import Entrant, Login, LoginTable, checked_owner, digest
from rag.wiring.listeners import RELAY_HEADER, ListenerPolicy, is_among, networks_of, relayed_client

if TYPE_CHECKING:
    from rag.web.access.oidc import LoginProvider

PEER = "groundnote.peer"  # the address that the connection came from
RELAYED = f"HTTP_{RELAY_HEADER.upper().replace('-', '_')}"  # set by Groundnote's own MCP server
PEERS_HOST = "groundnote.host"  # the Host header as it came
Environment = dict[str, Any]
log = logging.getLogger(__name__)


def believe_proxies(app: Flask, policy: ListenerPolicy, secrets: SecretBox) -> None:
    """Take client, scheme and host from trusted proxies, and from Groundnote's own MCP server."""
    networks, served = policy.proxies, app.wsgi_app

    def answer(environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ[PEER] = environ.get("REMOTE_ADDR") or ""
        environ[PEERS_HOST] = environ.get("HTTP_HOST", "")
        relayed = environ.get(RELAYED)
        if relayed:
            environ["REMOTE_ADDR"] = relayed_client(relayed, secrets) or environ[PEER]
        elif is_among(environ[PEER], networks):
            _believe(environ, policy)
        elif "HTTP_X_FORWARDED_PROTO" in environ:
            peer = f"auth.trusted_proxies does not name {environ[PEER] or 'this machine'}"
            log_throttled(log, "What a proxy says of its clients is not believed", peer)
        return served(environ, start_response)

    app.wsgi_app = answer  # type: ignore[method-assign]


def _believe(environ: Environment, policy: ListenerPolicy) -> None:
    """Read the last value of each header, which the nearest proxy wrote; anyone writes others."""
    forwarded_for = environ.get("HTTP_X_FORWARDED_FOR", "")
    environ["REMOTE_ADDR"] = policy.client_of(environ[PEER], forwarded_for)
    scheme = _last(environ, "HTTP_X_FORWARDED_PROTO").lower()
    if scheme in ("http", "https"):
        environ["wsgi.url_scheme"] = scheme
    host = _last(environ, "HTTP_X_FORWARDED_HOST")
    if host:
        environ["HTTP_HOST"] = host


def _last(environ: Environment, name: str) -> str:
    return str(environ.get(name, "")).rpartition(",")[2].strip()


EXTENSION = "groundnote-owners"
AUDIT = "groundnote-audit"
GUESSES = "groundnote-guesses"  # of tokens, in all places where one is entered
COOKIE = "groundnote"  # holds a random secret; the database holds its digest
DIGEST_PREFIX = "sha256:"

FindOwner = Callable[[], str]


def current_owner() -> str:
    """Return the owner whose sessions and rights this request has. Raises NotAllowed."""
    if "owner" not in g:
        g.owner = current_app.extensions[EXTENSION]()
        act(g.owner, caller_address())
    return str(g.owner)


def is_cookie_caller() -> bool:
    """Return whether only a cookie identifies the caller, so that a foreign page could abuse it."""
    return bool(not request.headers.get("Authorization") and request.cookies.get(COOKIE))


def caller_address() -> str:
    """Return the client's address, as far as trusted proxies name it."""
    return request.remote_addr or ""


def note(action: str, subject: str = "", *, owner: str | None = None) -> None:
    """Write an action of this request into the audit trail."""
    trail: AuditTrail = current_app.extensions[AUDIT]
    who = current_owner() if owner is None else owner
    trail.add(action, subject, owner=who, address=caller_address())


class LoginOwners:
    """Owners by bearer tokens, and by logins of browsers with a token or at a provider.

    `sha256:…` in the settings is the digest of a token, so that the token itself is not written
    there. It can only be compared: browsers hold a random secret of their own.
    """

    def __init__(
        self,
        tokens: Mapping[str, str],
        logins: LoginTable,
        provider: "LoginProvider | None" = None,
        *,
        guesses: GuessCounter | None = None,
    ) -> None:
        if not tokens and provider is None:
            raise SetupError(
                'auth.mode is "tokens", but auth.tokens is empty. Give at least one: '
                '{"auth": {"tokens": {"<a long random token>": "<its owner>"}}}.'
            )
        if not all(token.strip() and owner.strip() for token, owner in tokens.items()):
            raise SetupError(
                "auth.tokens has an empty token or owner, which would let anybody in. Remove it."
            )
        self._by_digest = {_digest_of(token): owner for token, owner in tokens.items()}
        self._guesses = guesses or GuessCounter()
        self.has_tokens = bool(tokens)
        self.logins = logins
        self.provider = provider

    def __call__(self) -> str:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind:
            bearer = token.strip() if kind.lower() == "bearer" else ""
            return checked_owner(self.entrant(bearer).owner)
        login = self.login()
        if login is None:
            raise NotAllowed("Please log in, or send your token as `Authorization: Bearer …`.")
        return checked_owner(login.owner)

    def login(self) -> Login | None:
        """Return the login of this request's cookie, while the credential behind it is valid."""
        current_login = self.logins.find(request.cookies.get(COOKIE, ""))
        if current_login is None:
            return None
        login, credential = current_login
        is_providers = self.provider is not None and credential == self.provider.credential
        return login if is_providers or self._by_digest.get(credential) == login.owner else None

    def entrant(self, token: str, *, address: str | None = None) -> Entrant:
        """Return who has this token, compared by digest so that the time reveals nothing.

        Raises:
            NotAllowed: the token is not known.
            TooManyRequests: too many wrong tokens came from this address (werkzeug's).
        """
        address = caller_address() if address is None else address
        token_digest = digest(token)
        self._guesses.refuse_many(address, token_digest)
        owner = self._by_digest.get(token_digest)
        if owner is None:
            self._guesses.was_wrong(address)
            raise NotAllowed("This token is not known. Ask whoever runs this server for one.")
        self._guesses.was_right(token_digest)
        return Entrant(owner, token_digest)


def _digest_of(configured: str) -> str:
    if configured.startswith(DIGEST_PREFIX):
        return configured.removeprefix(DIGEST_PREFIX).lower()
    return digest(configured)


def has_login() -> bool:
    """Return whether browsers log in on this server."""
    return isinstance(current_app.extensions[EXTENSION], LoginOwners)


# ── Ways to know callers ─────────────────────────────────────────────────────────────────────


def find_owners(app: Flask, settings: Settings, engine: Engine) -> None:
    """Install the way to find owners that `auth.mode` names.

    Raises SetupError if it is not safe.
    """
    auth, guesses = settings.auth, GuessCounter(place_of_counters(settings))
    app.extensions[AUDIT] = AuditTrail(engine)
    app.extensions[GUESSES] = guesses
    match auth.mode:
        case "tokens":
            app.extensions[EXTENSION] = LoginOwners(
                auth.tokens, LoginTable(engine), guesses=guesses
            )
        case "oidc":
            app.extensions[EXTENSION] = LoginOwners(
                auth.tokens, LoginTable(engine), login_provider(auth), guesses=guesses
            )
        case "proxy":
            app.extensions[EXTENSION] = owner_from_header(auth)
        case "single":
            try:
                owner = checked_owner(settings.sessions.default_owner)
            except NotAllowed as error:
                raise SetupError(f"sessions.default_owner: {error}.") from error
            app.extensions[EXTENSION] = lambda: owner


def login_provider(auth: AuthSettings) -> "LoginProvider":
    """Return the configured provider. Raises SetupError."""
    if auth.oidc is None:
        raise SetupError(
            'auth.mode is "oidc", but auth.oidc is not set. Expected: {"discovery_url": '
            '"https://…/.well-known/openid-configuration", "client_id": "…", "client_secret": "…"}.'
        )
    try:
        from rag.web.access.oidc import LoginProvider
    except ImportError as error:
        raise SetupError(
            f'auth.mode is "oidc", which needs the extra groundnote[oidc] ({error}). Install it '
            "with pip install 'groundnote[oidc]'."
        ) from error
    return LoginProvider(auth.oidc)


def owner_from_header(auth: AuthSettings) -> FindOwner:
    """Find owners in a header of the trusted proxies, which overwrite it in every request."""
    trusted = networks_of(auth.trusted_proxies)

    def find() -> str:
        peer = str(request.environ.get(PEER, request.remote_addr or ""))
        if not is_among(peer, trusted):
            raise NotAllowed(
                f"This request does not come from the proxy ({peer} is not among "
                "auth.trusted_proxies)."
            )
        owner = request.headers.get(auth.proxy_header, "").strip()
        if not owner:
            raise NotAllowed(
                f"The proxy in front of this server must name the caller in {auth.proxy_header}."
            )
        return checked_owner(owner)

    return find
