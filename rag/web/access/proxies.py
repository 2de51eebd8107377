"""What a trusted proxy says of a request: scheme, address and host that its client used.

It is believed from addresses that `auth.trusted_proxies` names, in every mode. What the connection
itself says is kept beside it: who may be believed is decided by that.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from flask import Flask, request

from rag.errors import SetupError
from rag.runtime.calm import tell

PEER = "groundnote.peer"  # the address that the connection came from
PEERS_HOST = "groundnote.host"  # the Host header as it came
ProxyNetwork = IPv4Network | IPv6Network
Environment = dict[str, Any]
log = logging.getLogger(__name__)


def believe_proxies(app: Flask, trusted: Sequence[str]) -> None:
    """Have requests say what their client used. Raises SetupError."""
    networks, served = networks_of(trusted), app.wsgi_app

    def answer(environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ[PEER] = environ.get("REMOTE_ADDR") or ""
        environ[PEERS_HOST] = environ.get("HTTP_HOST", "")
        if is_among(environ[PEER], networks):
            _believe(environ, networks)
        elif "HTTP_X_FORWARDED_PROTO" in environ:
            peer = f"auth.trusted_proxies does not name {environ[PEER] or 'this machine'}"
            tell(log, "What a proxy says of its clients is not believed", peer)
        return served(environ, start_response)

    app.wsgi_app = answer  # type: ignore[method-assign]


def networks_of(trusted: Sequence[str]) -> list[ProxyNetwork]:
    """Raises SetupError."""
    try:
        return [ip_network(each, strict=False) for each in trusted]
    except ValueError as error:
        raise SetupError(
            f"auth.trusted_proxies holds what is no address ({error}). Expected such as "
            '["127.0.0.1", "10.0.0.0/8"].'
        ) from error


def is_among(text: str, networks: Sequence[ProxyNetwork]) -> bool:
    """A peer without an address, as on a Unix socket, is this machine."""
    address = address_of(text) or ip_address("127.0.0.1")
    return any(address in network for network in networks)


def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Without the port that some proxies write behind it."""
    bare = text.strip().removeprefix("[").partition("]")[0]
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return ip_address(bare)
    except ValueError:
        return None


def _believe(environ: Environment, networks: Sequence[ProxyNetwork]) -> None:
    """The last word of each header is the nearest proxy's; what stands before may be anybody's."""
    hops = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    for hop in reversed(hops):
        address = address_of(hop)
        if address is None:
            break
        environ["REMOTE_ADDR"] = str(address)
        if not is_among(str(address), networks):
            break
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
