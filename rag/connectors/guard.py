"""Connections to public hosts only, so that an address given by a user cannot reach this network.

A name is resolved once and every resulting address is checked; the connection goes to a checked
address. So no spelling of an address, no redirect and no changing DNS answer gets around the check.
Everything in this package that fetches connects through a guard.
"""

import ipaddress
import socket
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from rag.errors import Forbidden, SourceAway

PORTS = frozenset({80, 443, 8000, 8080, 8443, 8888})  # for hosts that are not explicitly allowed
CONNECT_SECONDS = 10.0
MOST_ADDRESSES = 4  # of a name, at most
LONGEST_HOST = 253
# Public addresses at which cloud machines get their secrets.
PLATFORM = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24")))
TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
TRANSLATED_HERE = ipaddress.ip_network("64:ff9b:1::/48")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Guard:
    """Decides which hosts may be contacted, and connects to them."""

    def __init__(
        self, private_hosts: Iterable[str] = (), *, ports: Collection[int] | None = PORTS
    ) -> None:
        """`private_hosts` are names, addresses or networks that are allowed although they are
        private.

        With `ports` None every port is allowed, for file servers, which have ports of their own.
        """
        self._ports = ports
        names = [host.strip().lower().rstrip(".").strip("[]") for host in private_hosts]
        self._names = frozenset(filter(None, names))
        self._networks: list[Network] = []
        for name in self._names:
            with suppress(ValueError):  # the name of a host
                self._networks.append(ipaddress.ip_network(name, strict=False))

    def connect(self, host: str, port: int, timeout: float | None = None) -> socket.socket:
        """Connect to a checked address of the host. Raises Forbidden and SourceAway."""
        failed: OSError | None = None
        for address in self.addresses(host, port)[:MOST_ADDRESSES]:
            try:
                return socket.create_connection((address, port), timeout or CONNECT_SECONDS)
            except OSError as error:
                failed = error
        raise SourceAway(f"{host[:100]} cannot be reached on port {port} ({failed}).") from failed

    def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host. Raises Forbidden if any of them is not allowed."""
        name = host.strip("[]").lower().rstrip(".")
        if not 0 < len(name) <= LONGEST_HOST or not name.isprintable() or "%" in name:
            raise Forbidden(f"{host[:100]!r} is no host that can be asked.")
        if not 0 < port < 65536:
            raise Forbidden(f"{port} is no port that can be asked.")
        try:
            entries = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise SourceAway(f"The name {host[:100]} is not known ({error}).") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        is_named = name in self._names
        for address in addresses:
            self._check(host, address, port, is_named=is_named)
        return addresses

    def _check(self, host: str, written: str, port: int, *, is_named: bool) -> None:
        address = _address(written)
        if address is None or not self._may_be_asked(address, is_named=is_named):
            raise Forbidden(
                f"{host[:100]} leads to {written}, an address of this network or machine, and is "
                "not asked. Whoever runs the server can name it in sources.private_hosts."
            )
        is_open = self._ports is None or port in self._ports or is_named
        if not is_open and not self._is_in_networks(address):
            allowed = ", ".join(map(str, sorted(self._ports or ())))
            raise Forbidden(f"Port {port} of {host[:100]} is not asked; allowed are {allowed}.")

    def _may_be_asked(self, address: Address, *, is_named: bool) -> bool:
        inner = _carried_address(address)
        if any(map(_is_never_asked, (address, inner))):
            return False
        return is_named or self._is_in_networks(inner) or _is_public(inner)

    def _is_in_networks(self, address: Address) -> bool:
        inner = _carried_address(address)
        return any(
            inner.version == network.version and inner in network for network in self._networks
        )


def _address(written: str) -> Address | None:
    """Parse an address; None for one with a zone, which is valid on one link only."""
    with suppress(ValueError):
        return None if "%" in written else ipaddress.ip_address(written)
    return None


def _carried_address(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address embeds, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in TRANSLATED[0] or (address in TRANSLATED[1] and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address


def _is_never_asked(address: Address) -> bool:
    """Return whether an address is forbidden even if its host is allowed, as for cloud metadata."""
    return (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or any(address in network for network in PLATFORM)
        or (isinstance(address, ipaddress.IPv6Address) and address in TRANSLATED_HERE)
    )


def _is_public(address: Address) -> bool:
    is_of_a_site = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return address.is_global and not address.is_reserved and not is_of_a_site


class GuardedNetwork:
    """The network backend of an httpcore pool: connections are guarded and have a deadline."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.deadline = float("inf")  # of time.monotonic

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Sequence[Any] | None = None,
    ) -> Any:
        from httpcore._backends.sync import SyncStream

        sock = self._guard.connect(host, port, self.left(timeout))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _TimedStream(SyncStream(sock), self)

    def left(self, timeout: float | None) -> float:
        """Return the seconds left for this request. Raises SourceAway if there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise SourceAway("It took too long to answer.")
        return min(left, CONNECT_SECONDS if timeout is None else timeout)


class _TimedStream:
    """A stream that ends at its request's deadline, however slowly data arrives."""

    def __init__(self, stream: Any, network: GuardedNetwork) -> None:
        self._stream = stream
        self._network = network

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return bytes(self._stream.read(max_bytes, self._network.left(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._network.left(timeout))

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_TimedStream":
        secured = self._stream.start_tls(ssl_context, server_hostname, self._network.left(timeout))
        return _TimedStream(secured, self._network)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
