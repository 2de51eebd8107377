"""Object stores, file servers and archives that fsspec reaches, as sources of documents."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from rag.connectors.folder import day_of
from rag.connectors.guard import Guard, GuardedNetwork
from rag.connectors.kinds import is_chain, masked, scheme_of
from rag.documents.cleaning import day_in
from rag.documents.files import UNFIT
from rag.errors import RagError, SetupError, SourceAway, TooLarge, Unreadable, UserError
from rag.seams import ListedFile, SourceOptions

STRONG_MARKS = ("etag", "e_tag", "checksum", "sha", "generation", "crc")  # derived from the content
TIMES = ("mtime", "modified", "lastmodified", "last_modified", "last_write_time", "updated",
         "created", "date_time")  # fmt: skip
CERTAIN_SECONDS = 3.0  # a more recent version may have the time and size of the next
DEEPEST = 64
QUIET_SECONDS = 60.0
PORTS = {"sftp": 22, "ssh": 22, "smb": 445, "webdav": 80, "dav": 80, "webdavs": 443, "davs": 443}

# The login, and its number of uses.
_in_use: dict[tuple[str, int], tuple[tuple[Any, Any], int]] = {}
_lock = Lock()


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """A file system and the folder in which the source begins."""

    name: str  # its name in fsspec
    root: str
    options: dict[str, Any] = field(default_factory=dict)
    link: str = ""  # the base link of its files; ends with a slash


def _bucket(address: str, _guard: Guard) -> StoreFolder:
    scheme, _, rest = address.partition("://")
    return StoreFolder("gs" if scheme == "gcs" else scheme, rest)


def _azure(address: str, _guard: Guard) -> StoreFolder:
    parts = urlsplit(address)
    container, _, host = parts.netloc.partition("@")
    account = {"account_name": host.partition(".")[0]} if host else {}
    return StoreFolder("abfs", f"{container}{parts.path}", account)


def _sftp(address: str, guard: Guard) -> StoreFolder:
    parsed, port = urlsplit(address), _port(address)
    host = parsed.hostname or ""
    options = _login(address) | {
        # Connects to the checked address; the host key is looked up by name.
        "host": guard.addresses(host, port)[0],
        "port": port,
        "host_key_alias": host,
        "known_hosts": str(Path.home() / ".ssh" / "known_hosts"),
        "connect_timeout": QUIET_SECONDS,
        "config": None,  # the user's ssh config may name commands to run
    }
    return StoreFolder("sftp", unquote(parsed.path) or "/", options)


def _smb(address: str, guard: Guard) -> StoreFolder:
    parsed, port = urlsplit(address), _port(address)
    options = {"host": guard.addresses(parsed.hostname or "", port)[0], "port": port}
    return StoreFolder("smb", unquote(parsed.path), options | _login(address))


def _webdav(address: str, guard: Guard) -> StoreFolder:
    import httpx

    from rag.connectors.web.fetch import AGENT, guarded_transport

    parsed, port = urlsplit(address), _port(address)
    guard.addresses(parsed.hostname or "", port)
    scheme = "https" if parsed.scheme in ("webdavs", "davs") else "http"
    host = parsed.netloc.rpartition("@")[2]
    link = urlunsplit((scheme, host, parsed.path.rstrip("/") + "/", "", ""))
    options: dict[str, Any] = {
        "base_url": link,
        "transport": guarded_transport(GuardedNetwork(guard)),
        "timeout": httpx.Timeout(QUIET_SECONDS),
        "trust_env": False,
        "headers": {"User-Agent": AGENT},
    }
    login = _login(address)
    if login:
        options["auth"] = (login["username"], login.get("password", ""))
    return StoreFolder("webdav", "", options, link)


def _zip(address: str, _guard: Guard) -> StoreFolder:
    parts = urlsplit(address)
    return StoreFolder("zip", "", {"fo": unquote(parts.netloc + parts.path)})


PLACES: dict[
    str, tuple[Callable[[str, Guard], StoreFolder], str]
] = {  # with the extra that is needed
    "s3": (_bucket, "s3"),
    "gs": (_bucket, "gcs"),
    "gcs": (_bucket, "gcs"),
    "abfs": (_azure, "azure"),
    "abfss": (_azure, "azure"),
    "az": (_azure, "azure"),
    "sftp": (_sftp, "sftp"),
    "ssh": (_sftp, "sftp"),
    "webdav": (_webdav, "webdav"),
    "webdavs": (_webdav, "webdav"),
    "dav": (_webdav, "webdav"),
    "davs": (_webdav, "webdav"),
    "smb": (_smb, "smb"),
    "zip": (_zip, ""),
    "memory": (_bucket, ""),
}


class StoreSource:
    """The files of a store; hidden files and links are left out."""

    def __init__(self, address: str, options: SourceOptions) -> None:
        import fsspec

        self._address = masked(address)
        self._options = options
        self._place = place_of(address, Guard(options.private_hosts, ports=None))
        self._paths: dict[str, str] = {}
        with ExitStack() as resources:
            if self._place.name == "smb":
                resources.enter_context(logged_in(self._place.options))
            try:
                kind = fsspec.get_filesystem_class(self._place.name)
            except ImportError as error:
                scheme = scheme_of(address)
                extra = f"groundnote[{PLACES[scheme][1]}]"
                raise SetupError(
                    f"{scheme}:// needs a package that is not installed. Install "
                    f"{extra}: pip install '{extra}'."
                ) from error
            with _translate_errors(self._address):
                self._system = kind(**self._place.options, skip_instance_cache=True)
            self._resources = resources.pop_all()

    def listed(self) -> Iterator[ListedFile]:
        """Yield all files below the address. Raises SourceAway where a part cannot be listed."""
        self._paths = {}
        most = self._options.most_files
        with _translate_errors(self._address):
            self._system.invalidate_cache()
            root = self._system._strip_protocol(self._place.root)
        for path, info in self._walk(root, 0):
            inside = path.strip("/").removeprefix(root.strip("/")).strip("/")
            parts = (UNFIT.sub("\ufffd", part) for part in inside.split("/"))
            name = "/".join(part for part in parts if part not in ("", ".", ".."))
            if not name or name in self._paths:
                continue
            if len(self._paths) >= most:
                raise SourceAway(
                    f"{self._address} has more than {most:,} files. Name a folder of it, or raise "
                    "sources.most_files."
                )
            self._paths[name] = path
            size = info.get("size")
            size = int(size) if size is not None else None
            link = self._place.link + name if self._place.link else ""
            yield ListedFile(name, mark_of(info), size, link, date=day_of_change(info))

    def _walk(self, folder: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if depth > DEEPEST:
            raise SourceAway(f"{self._address} has folders that are more than {DEEPEST} deep.")
        with _translate_errors(self._address):
            entries = self._system.ls(folder, detail=True)
        for entry in sorted(entries, key=lambda entry: str(entry["name"])):
            path = str(entry["name"])
            last = path.rstrip("/").rpartition("/")[2]
            is_itself = path.strip("/") == folder.strip("/")
            if last.startswith(".") or (is_itself and entry["type"] == "directory"):
                continue
            if entry["type"] == "directory":
                yield from self._walk(path, depth + 1)
            elif entry["type"] == "file" and not (is_itself and depth == 0 and path.endswith("/")):
                yield path, entry

    def read(self, file: ListedFile) -> bytes:
        """Return a file's bytes. Raises Unreadable, TooLarge and SourceAway."""
        most = self._options.max_bytes
        path = self._paths.get(file.name)
        if path is None:
            raise Unreadable(file.name, "it is not there any more.")
        try:
            with _translate_errors(self._address), self._system.open(path, "rb") as opened:
                data = bytes(opened.read(most + 1))
        except _Missing as error:
            raise Unreadable(file.name, "it is not there any more.") from error
        if len(data) > most:
            raise TooLarge(f"{file.name}: has more than {most:,} bytes, the limit.")
        return data

    def close(self) -> None:
        """Close the connections, or drop the file system that owns them."""
        self._system = None
        self._resources.close()


class _Missing(SourceAway):
    """Raised where a file or folder no longer exists."""


@contextmanager
def _translate_errors(address: str) -> Iterator[None]:
    """Turn the errors of any file system into SourceAway."""
    try:
        yield
    except RagError:
        raise
    except FileNotFoundError as error:
        raise _Missing(f"{address}: there is nothing of that name. Nothing is removed.") from error
    except Exception as error:
        message = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise SourceAway(f"{address} cannot be reached ({message}). Nothing is removed.") from error


def mark_of(info: Mapping[str, Any]) -> str:
    """Return the mark of a version: a hash of its content, else its time and size."""
    facts = _normalised_info(info)
    strong = next((facts[key] for key in STRONG_MARKS if facts.get(key)), "")
    size = facts.get("size", "")
    if strong:
        return f"{strong}-{size}".replace('"', "")
    changed = _time_in(facts)
    return f"{changed}-{size}" if changed is not None and _is_certain(changed) else ""


def day_of_change(info: Mapping[str, Any]) -> str:
    """Return the day of the last change, or ""."""
    changed = _time_in(_normalised_info(info))
    if isinstance(changed, int | float):
        return day_of(changed)
    if isinstance(changed, datetime):
        return changed.date().isoformat()
    return day_in(str(changed or ""))


def _time_in(facts: Mapping[str, Any]) -> Any:
    return next((facts[key] for key in TIMES if facts.get(key)), None)


def _normalised_info(info: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower().replace("-", "_"): value for key, value in info.items()}


def _is_certain(changed: Any) -> bool:
    """Return whether a time is so long ago that the next version has another time."""
    if isinstance(changed, datetime):
        moment = changed if changed.tzinfo else changed.replace(tzinfo=UTC)
        return time.time() - moment.timestamp() > CERTAIN_SECONDS
    if isinstance(changed, int | float):
        return time.time() - changed > CERTAIN_SECONDS
    return True


def place_of(address: str, guard: Guard) -> StoreFolder:
    """Return the file system of an address. Raises UserError, and Forbidden for a private host."""
    scheme = scheme_of(address)
    if is_chain(address) or scheme not in PLACES:
        schemes = ", ".join(sorted(PLACES.keys() - {"memory"}))
        raise UserError(
            f"{masked(address)[:100]} is not read. Name one place, without ::, at one of {schemes}."
        )
    return PLACES[scheme][0](address, guard)


def _port(address: str) -> int:
    parts = urlsplit(address)
    if not parts.hostname:
        raise UserError(f"{masked(address)[:100]} names no host.")
    try:
        return parts.port or PORTS[parts.scheme]
    except ValueError as error:
        raise UserError(f"{masked(address)[:100]}: its port is no number.") from error


def _login(address: str) -> dict[str, str]:
    parts = urlsplit(address)
    login = {"username": parts.username, "password": parts.password}
    return {key: unquote(value) for key, value in login.items() if value}


def open_store(address: str, options: SourceOptions) -> StoreSource:
    """Open a store. Raises UserError, SetupError for a missing package, and SourceAway."""
    return StoreSource(address, options)


@contextmanager
def logged_in(options: Mapping[str, Any]) -> Iterator[None]:
    """Hold a login at an SMB server; after its last use the connection is closed.

    The client keeps one login for the whole process and asks for no password while it is open, so
    another login would read with the rights of the first. Raises SourceAway for another login.
    """
    server = options["host"], options["port"]
    login = options.get("username"), options.get("password")
    with _lock:
        current, often = _in_use.get(server, (login, 0))
        if current != login:
            raise SourceAway(
                f"{server[0]} is being read with another login just now. The next sync tries "
                "again. Nothing is removed."
            )
        _in_use[server] = login, often + 1
    try:
        yield
    finally:
        with _lock:
            often = _in_use[server][1] - 1
            if often:
                _in_use[server] = login, often
            else:
                del _in_use[server]
                if client := sys.modules.get("smbclient"):  # absent if its package is missing
                    client.delete_session(server[0], port=server[1])
