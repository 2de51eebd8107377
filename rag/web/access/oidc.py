"""Logins at an OpenID Connect provider: the redirect to it, and the checks of what it returns.

The server stores nothing about a login that is not finished: the browser holds one secret, from
which state, nonce and code verifier are derived, so that any process can finish what another began.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.sync_app import BaseApp, OAuth2Mixin
from authlib.integrations.base_client.sync_openid import OpenIDMixin
from authlib.integrations.requests_client import OAuth2Session
from joserfc.errors import JoseError
from requests import RequestException

from rag.errors import NotAllowed, ProviderAway, SetupError
from rag.settings import GROUP, OidcSettings
from rag.web.access.logins import Entrant, checked_owner, digest

DISCOVERY = "/.well-known/openid-configuration"
SECONDS = 5.0  # for one call
AWAY_SECONDS = 5.0  # without a new attempt after a failure, so that no queue of threads waits
SIGNED_BY_A_KEY_PAIR = ("RS", "PS", "ES", "Ed")  # "none" and shared secrets prove nothing here
MOST_GROUPS = 1000
LONGEST_GROUP = 190
# Whatever Authlib raises about a provider's response, which may hold anything.
UNFIT = (AuthlibBaseError, JoseError, ValueError, LookupError, TypeError, AttributeError)


class _Client(OAuth2Mixin, OpenIDMixin, BaseApp):  # type: ignore[misc]
    client_cls = OAuth2Session


class LoginProvider:
    """One provider, known by its discovery URL; its metadata is loaded at the first login."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self.issuer = settings.discovery_url.removesuffix(DISCOVERY)
        self.name = urlsplit(self.issuer).hostname or ""
        _check(settings.discovery_url, self.name)
        self.credential = digest(f"{self.issuer} {settings.client_id}")
        secret = settings.client_secret
        self._client = _Client(
            None,
            client_id=settings.client_id,
            client_secret=None if secret is None else secret.get_secret_value(),
            server_metadata_url=settings.discovery_url,
            client_kwargs={
                "scope": settings.scope,
                "code_challenge_method": "S256",
                "default_timeout": SECONDS,
            },
        )
        self._lock = Lock()
        self._away_until = 0.0

    def state(self, secret: str) -> str:
        """Return the `state` parameter, which shows in which browser the login began."""
        return derived(secret, "state")

    def login_url(self, secret: str, back: str) -> str:
        """Return the URL where the browser logs in. Raises ProviderAway and NotAllowed."""
        with self._heard():
            self._learn()
            way = self._client.create_authorization_url(
                back,
                state=self.state(secret),
                nonce=derived(secret, "nonce"),
                code_verifier=derived(secret, "verifier"),
            )
        return str(way["url"])

    def identify(self, code: str, secret: str, back: str) -> Entrant:
        """Return the caller whom the provider names for this code.

        Raises ProviderAway and NotAllowed.
        """
        with self._heard():
            self._learn()
            token = self._client.fetch_access_token(
                back, code=code, code_verifier=derived(secret, "verifier")
            )
            claims = self._client.parse_id_token(
                token,
                nonce=derived(secret, "nonce"),
                claims_options={
                    "iss": {"essential": True, "values": [self._metadata["issuer"]]},
                    "aud": {"essential": True, "value": self.settings.client_id},
                },
            )
            if claims is None:
                raise ValueError("it gave no id_token; the scope must hold openid")
            return self._entrant_of(self._with_userinfo(dict(claims), token))

    def logout_url(self, back: str) -> str | None:
        """Return the URL where the browser logs out of the provider too; None if there is none."""
        with suppress(ProviderAway, NotAllowed), self._heard():
            self._learn()
        if not self._metadata.get("end_session_endpoint"):
            return None
        return str(self._client.create_logout_url(back, client_id=self.settings.client_id)["url"])

    @property
    def _metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self._client.server_metadata
        return metadata

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Translate failed calls and unusable responses into ProviderAway and NotAllowed."""
        try:
            yield
        except RequestException as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            raise ProviderAway(
                f"The login provider {self.issuer} cannot be reached ({type(error).__name__}). "
                "Whoever is logged in stays so; try again in a moment."
            ) from error
        except UNFIT as error:
            raise NotAllowed(
                f"The login provider {self.issuer} said what cannot be believed: {error}. Log in "
                "again; if it stays so, tell whoever runs this server."
            ) from error

    def _learn(self) -> None:
        """Load the provider's metadata, once."""
        with self._lock:
            if "_loaded_at" in self._metadata:
                return
            if time.monotonic() < self._away_until:
                raise ProviderAway(
                    f"The login provider {self.issuer} could not be reached just now. Try again in "
                    "a few seconds."
                )
            try:
                metadata = self._client.load_server_metadata()
                if str(metadata.get("issuer", "")).rstrip("/") != self.issuer.rstrip("/"):
                    raise ValueError(
                        f"its issuer is {metadata.get('issuer')!r}, not {self.issuer!r}"
                    )
                algorithms = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
                metadata["id_token_signing_alg_values_supported"] = [
                    algorithm
                    for algorithm in algorithms
                    if algorithm.startswith(SIGNED_BY_A_KEY_PAIR)
                ]
            except BaseException:
                self._metadata.clear()  # incomplete metadata must not be used
                self._away_until = time.monotonic() + AWAY_SECONDS
                raise

    def _with_userinfo(self, claims: dict[str, Any], token: object) -> dict[str, Any]:
        """Add claims from the userinfo endpoint, if the id token lacks the name or the groups."""
        wanted = (self.settings.owner_claim, self.settings.groups_claim)
        if all(claim in claims for claim in wanted) or "userinfo_endpoint" not in self._metadata:
            return claims
        more = dict(self._client.userinfo(token=token))
        if more.get("sub") != claims["sub"]:
            raise ValueError("its userinfo speaks of somebody else")
        return more | claims

    def _entrant_of(self, claims: dict[str, Any]) -> Entrant:
        claim = self.settings.owner_claim
        owner = claims.get(claim)
        if not isinstance(owner, str) or not owner.strip():
            raise ValueError(f"it named nobody in the claim {claim!r} (auth.oidc.owner_claim)")
        if claim == "email":
            if claims.get("email_verified") is not True:
                raise ValueError(
                    f"it has not verified the address {owner!r}. Let auth.oidc.owner_claim be sub "
                    "if it never does"
                )
            owner = owner.lower()
        groups = _groups(claims.get(self.settings.groups_claim))
        entrant = Entrant(checked_owner(owner.strip()), self.credential, groups)
        allowed = self.settings.allowed
        named = {entrant.owner, *(f"{GROUP}{group}" for group in groups)}
        if "@" in entrant.owner:
            named.add("@" + entrant.owner.rpartition("@")[2])
        if allowed and named.isdisjoint(allowed):
            raise NotAllowed(
                f"{entrant.owner} is known to the login provider, but may not log in here. Ask "
                "whoever runs this server (auth.oidc.allowed)."
            )
        return entrant


def derived(secret: str, what: str) -> str:
    """Return a value of one login that reveals neither its other values nor the secret."""
    return digest(f"{what}:{secret}")


def _groups(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    groups = [value] if isinstance(value, str) else value
    if not isinstance(groups, list) or len(groups) > MOST_GROUPS:
        raise ValueError(f"its groups are no list of at most {MOST_GROUPS} names")
    if not all(isinstance(group, str) and len(group) <= LONGEST_GROUP for group in groups):
        raise ValueError(f"its groups are not all names of at most {LONGEST_GROUP} characters")
    return tuple(sorted(set(groups)))


def _check(discovery_url: str, host: str) -> None:
    """Refuse a discovery URL that others could tamper with. Raises SetupError."""
    is_here = host in ("localhost", "127.0.0.1", "::1")
    is_safe = discovery_url.startswith("https://") or (
        discovery_url.startswith("http://") and is_here
    )
    if not is_safe or not host or not discovery_url.endswith(DISCOVERY):
        raise SetupError(
            f"auth.oidc.discovery_url is {discovery_url!r}; expected https://…{DISCOVERY}."
        )
