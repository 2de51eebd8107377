"""A real OpenID Connect provider on loopback, whose answers a test may spoil."""

from contextlib import contextmanager
from functools import cache

import flask
import httpx
from authlib import jose
from joserfc import jwt
from joserfc._rfc7518.rsa_key import RSABinding
from joserfc.jwk import RSAKey
from oidc_provider_mock import app as provider_app

from tests.applications import served

jose.RSAKey.generate_key = cache(jose.RSAKey.generate_key)  # one key for all providers
TOKEN_PATH = "/oauth2/token"
_read_key = RSABinding.import_private_key
_known_keys = {}


def _read_once(key):
    """Its primes are looked for at each reading, for longer than a login takes otherwise."""
    if key["d"] not in _known_keys:
        _known_keys[key["d"]] = _read_key(key)
    return _known_keys[key["d"]]


RSABinding.import_private_key = _read_once


class Provider:
    """Knows whoever is set; `spoil` changes the JSON of what it answers at a path."""

    def __init__(self):
        self.app = provider_app(require_nonce=True)
        self.app.after_request(self._spoilt)
        self._spoil = {}
        self.calls = []

    def set_user(self, sub, **claims):
        assert self.app.test_client().put(f"/users/{sub}", json=claims).status_code < 300

    def log_in(self, location, sub):
        """What a person does there; returns where the browser is sent back to."""
        response = httpx.post(location, data={"sub": sub})
        assert response.status_code == 302, response.text
        return response.headers["Location"]

    def spoil(self, path, change):
        self._spoil[path] = change

    def spoiling(self, path):
        return self._spoil[path]

    def forge(self, key=None, algorithm="RS256", header=None, **claims):
        """From now on id_tokens say something else, signed by this key or its own."""

        def change(answer):
            own = RSAKey.import_key(_storage().jwk.as_dict(is_private=True))
            said = jwt.decode(answer["id_token"], own).claims | claims
            said = {name: value for name, value in said.items() if value is not None}
            head = {"alg": algorithm, **(header or {})}
            token = jwt.encode(head, said, key or own, algorithms=[algorithm])
            return answer | {"id_token": token}

        self.spoil(TOKEN_PATH, change)

    def public_key(self):
        return RSAKey.import_key(httpx.get(f"{self.url}/jwks").json()["keys"][0])

    def _spoilt(self, response):
        self.calls.append(flask.request.path)
        change = self._spoil.get(flask.request.path)
        if change is not None and response.is_json and response.status_code == 200:
            response.set_data(flask.json.dumps(change(response.get_json())))
        return response


def _storage():
    return flask.g.oidc_provider_mock_storage


@contextmanager
def running_provider():
    provider = Provider()
    with served(provider.app) as provider.url:
        yield provider
