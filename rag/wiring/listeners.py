"""The policy of every listening server: who may reach it, under which host names and proxies."""

import hmac
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from rag.errors import SetupError
from rag.llm.discovery import SecretBox
from rag.search.index_lock import holder_of
from rag.settings import Settings

UNIX = "unix:"  # before the path of a socket
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANY = "*"
RELAY_HEADER = "X-Groundnote-Client"
_WITH_PORT = re.compile(r"(\[[^\[\]]*\]|[^:]*):[0-9]*")
ProxyNetwork = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class ListenerPolicy:
    """What holds for every request that a listener takes."""

    names: frozenset[str]  # host names it answers to; empty: any
    proxies: tuple[ProxyNetwork, ...]  # whose forwarded headers are believed

    def answers_as(self, host: str) -> bool:
        """Return whether a Host header names this server."""
        return not self.names or host_name(host) in self.names

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """Return the client's address: the last forwarded one that is no trusted proxy."""
        client = peer
        for hop in reversed(forwarded_for.split(",")):
            address = address_of(hop)
            if address is None or not is_among(client, self.proxies):
                break
            client = str(address)
        return client


def listener_policy(settings: Settings, host: str) -> ListenerPolicy:
    """Return the policy of a server at `host`. Raises SetupError if anybody could get in.

    Where all callers are one owner, only this machine may ask. On loopback, another name in the
    Host header means that a foreign page's name was bound to this machine, to read its responses.
    """
    proxies = tuple(networks_of(settings.auth.believed_proxies))
    allowed = {name.lower() for name in settings.web.allowed_hosts}
    if not is_loopback(host):
        if settings.auth.mode == "single" and not settings.auth.allow_public:
            raise SetupError(
                f"web.host is {host or 'every address'}, which others can reach, but auth.mode is "
                "single: anybody could read, add and delete everything. Set auth.mode to tokens, "
                "proxy or oidc, or auth.allow_public to true if that is what you want."
            )
        if not allowed:
            raise SetupError(
                f"web.host is {host}, which others can reach, but web.allowed_hosts is empty: "
                "any name would be answered to, and logins led there. Name the hosts under which "
                'this server is known, such as ["docs.example.com"], or ["*"] if a proxy checks '
                "them."
            )
    if ANY in allowed:
        return ListenerPolicy(frozenset(), proxies)
    here = f"[{host}]" if ":" in host else host.lower()
    return ListenerPolicy(frozenset(allowed | set(LOOPBACK) | {here}), proxies)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches `host`, as with a Unix socket."""
    if host == "localhost" or host.startswith(UNIX):
        return True
    address = address_of(host)
    return address is not None and address.is_loopback


def is_own_origin(origin: str, host: str) -> bool:
    """Return whether the requesting page was served under the host of the request."""
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def host_name(host: str) -> str:
    """Return the host without its port, in lower case: "[::1]:8000" gives "[::1]"."""
    match = _WITH_PORT.fullmatch(host.lower())
    return match[1] if match else host.lower()


# ── Relays ───────────────────────────────────────────────────────────────────────────────────


def relayed(address: str, secrets: SecretBox) -> dict[str, str]:
    """Return the header with which Groundnote's MCP server passes its client's address on."""
    return {RELAY_HEADER: f"{address} {secrets.sign(address)}"}


def relayed_client(value: str, secrets: SecretBox) -> str:
    """Return the passed-on address if it is signed with this installation's key; else ""."""
    address, _, signature = value.partition(" ")
    is_ours = hmac.compare_digest(signature.encode(), secrets.sign(address).encode())
    return address if is_ours else ""


# ── Addresses ────────────────────────────────────────────────────────────────────────────────


def networks_of(trusted: Iterable[str]) -> list[ProxyNetwork]:
    """Return the networks. Raises SetupError."""
    try:
        return [ip_network(network, strict=False) for network in trusted]
    except ValueError as error:
        raise SetupError(
            f"auth.trusted_proxies holds what is no address ({error}). Expected such as "
            '["127.0.0.1", "10.0.0.0/8"].'
        ) from error


def is_among(text: str, networks: Sequence[ProxyNetwork]) -> bool:
    """Return whether the address is in the networks; "", as on a Unix socket, is this machine."""
    if not networks:
        return False
    address = address_of(text) or ip_address("127.0.0.1")
    return any(address in network for network in networks)


def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address without a port; an IPv4 address also where it is written as IPv6."""
    bare = text.strip().removeprefix("[").partition("]")[0]
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ip_address(bare)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


# ── Where the server that holds this data can be reached; light, for commands beside it ───────────

ADDRESS_FILE = "server.json"


def write_address(data_dir: Path, url: str) -> None:
    """Write the URL and pid of a running server, for commands such as `groundnote ingest`."""
    address = {"url": url, "pid": os.getpid()}
    (data_dir / ADDRESS_FILE).write_text(json.dumps(address), encoding="utf-8")


def forget_address(data_dir: Path) -> None:
    """Delete that file if it is from this process or from a server that has ended."""
    path = data_dir / ADDRESS_FILE
    with suppress(OSError, ValueError, KeyError, TypeError):
        is_ours = json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid()
        if is_ours or running_server(data_dir) is None:
            path.unlink(missing_ok=True)


def running_server(data_dir: Path) -> str | None:
    """Return the URL of the server that holds this data, if one runs on this machine."""
    try:
        address = json.loads((data_dir / ADDRESS_FILE).read_text(encoding="utf-8"))
        pid = int(address["pid"])
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    index = data_dir / "chroma"
    if index.is_dir() and holder_of(index) != pid:
        return None  # another process has this pid now, as happens in containers
    url = str(address["url"])
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
