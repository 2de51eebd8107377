"""What a trusted proxy says of a request: scheme, address and host that its client used.

It is believed from addresses that `auth.trusted_proxies` names, in every mode. What the connection
itself says is kept beside it: who may be believed is decided by that.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, request

from rag.llm.connection import SecretBox
from rag.runtime.error_log import log_throttled
from rag.wiring.listeners import RELAY_HEADER, ListenerPolicy, is_among, relayed_client

PEER = "groundnote.peer"  # the address that the connection came from
RELAYED = f"HTTP_{RELAY_HEADER.upper().replace('-', '_')}"  # by our own MCP server
PEERS_HOST = "groundnote.host"  # the Host header as it came
Environment = dict[str, Any]
log = logging.getLogger(__name__)


def believe_proxies(app: Flask, policy: ListenerPolicy, secrets: SecretBox) -> None:
    """Have requests say what their client used, also those that our own MCP server passes on."""
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
    """The last word of each header is the nearest proxy's; what stands before may be anybody's."""
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


def peer_address() -> str:
    """Where the connection of this request came from: the proxy, if there is one."""
    return str(request.environ.get(PEER, request.remote_addr or ""))
