"""Fetch a branch in a separate process: a hostile pack can need any amount of memory.

JSON in on stdin, JSON out on stdout. Nothing that is fetched is run, and there is no working tree.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rag.connectors.guard import Guard
from rag.errors import Forbidden, SourceAway, TooLarge, UserError

MOST_PACKED = 1024 * 1024 * 1024  # bytes in one fetch
MOST_MEMORY = 1024 * 1024 * 1024  # address space of the process
MOST_SECONDS = 1_800.0
QUIET_SECONDS = 60.0
HISTORY = 50  # commits, to find a file's last author; 1 where these are too large
BRANCH = b"refs/heads/kept"
PACKAGE_PARENT = str(Path(__file__).resolve().parents[3])
PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "VIRTUAL_ENV", "SSL_CERT_FILE")
ERRORS = {"forbidden": Forbidden, "too_large": TooLarge, "user": UserError, "away": SourceAway}


@dataclass(frozen=True, slots=True)
class Wish:
    """A branch to fetch, and the bare repository that it is fetched into."""

    url: str  # without a login
    folder: str = ""
    branch: str = ""  # "": the default branch
    username: str = ""
    password: str = ""
    private_hosts: tuple[str, ...] = ()

    @property
    def local(self) -> Path | None:
        """The repository, where it is on this machine."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None


def fetch(wish: Wish) -> tuple[str, str]:
    """Return the fetched branch and its current commit. Raises UserError and SourceAway."""
    environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "rag.connectors.git.fetch_process"],
            input=json.dumps(asdict(wish) | {"most_memory": MOST_MEMORY}).encode(),
            capture_output=True,
            env=environment | {"PYTHONPATH": PACKAGE_PARENT},
            timeout=MOST_SECONDS,
            check=False,
        )
        reply = json.loads(ran.stdout)
    except subprocess.TimeoutExpired as error:
        raise SourceAway(f"Fetching took more than {MOST_SECONDS:.0f} seconds.") from error
    except ValueError as error:
        raise SourceAway(
            "Fetching needs more memory than a repository may: one of its files is too large."
        ) from error
    if "failed" in reply:
        raise ERRORS[reply["failed"]](reply["told"])
    return reply["branch"], reply["commit"]


def main() -> None:
    """Run one fetch within the limits."""
    from rag.documents.sandbox_worker import limit_memory

    request = json.load(sys.stdin)
    limit_memory(request.pop("most_memory"))
    sys.stdout.write(json.dumps(_answer(Wish(**request))))


def _answer(wish: Wish) -> dict[str, str]:
    import zlib

    from dulwich.client import HTTPUnauthorized
    from dulwich.errors import GitProtocolError, HangupException, NotGitRepository

    try:
        branch, commit = _fetched(wish)
    except tuple(ERRORS.values()) as error:
        kind = next(kind for kind, error_type in ERRORS.items() if isinstance(error, error_type))
        return {"failed": kind, "told": str(error)}
    except HTTPUnauthorized:
        return _away(wish, "it is not there, or needs a login: name a token: git+https://{name}@…")
    except NotGitRepository:
        return _away(wish, "there is no Git repository at this address")
    except MemoryError:
        return _away(wish, "one of its files is too large")
    except (GitProtocolError, HangupException, OSError, ValueError, KeyError, zlib.error) as error:
        return _away(wish, f"it cannot be fetched ({error})")
    return {"branch": branch, "commit": commit}


def _away(wish: Wish, reason: str) -> dict[str, str]:
    return {"failed": "away", "told": f"{wish.url}: {reason}. Nothing is removed."}


def _fetched(wish: Wish) -> tuple[str, str]:
    from dulwich.repo import Repo

    folder = Path(wish.folder)
    is_new = not (folder / "objects").is_dir()
    repository = Repo.init_bare(wish.folder, mkdir=not folder.exists()) if is_new else None
    with repository or Repo(wish.folder) as target:
        try:
            name, commit, symrefs = _fetch_into(target, wish, HISTORY)
        except TooLarge:
            name, commit, symrefs = _fetch_into(target, wish, 1)
        refs: Any = target.refs
        refs[BRANCH] = commit
        return branch_name(name, symrefs), commit.decode()


def _fetch_into(target: Any, wish: Wish, depth: int) -> tuple[bytes, bytes, dict[Any, bytes]]:
    """Return the ref and its commit, with the commits before it."""
    from dulwich.client import HttpGitClient

    client = HttpGitClient(
        wish.url,
        pool_manager=guarded_manager(Guard(wish.private_hosts)),
        username=wish.username or None,
        password=wish.password or None,
        timeout=QUIET_SECONDS,
        quiet=True,
    )
    chosen: list[tuple[bytes, bytes]] = []

    def wants(refs: Any, depth: int | None = None) -> list[Any]:
        name, commit = choose({bytes(ref): bytes(refs[ref]) for ref in refs}, wish)
        chosen[:] = [(name, commit)]
        return [] if commit in target.object_store else [commit]

    result = client.fetch("", target, determine_wants=wants, depth=depth)
    return *chosen[0], dict(result.symrefs)


def choose(refs: dict[bytes, bytes], wish: Wish) -> tuple[bytes, bytes]:
    """Return the ref of the requested branch or tag. Raises SourceAway."""
    branch = wish.branch.encode()
    names = [b"refs/heads/" + branch, b"refs/tags/" + branch] if branch else [b"HEAD"]
    for name in names:
        if name in refs:
            return name, refs.get(name + b"^{}", refs[name])
    branches = sorted(
        ref[11:].decode(errors="replace") for ref in refs if ref[:11] == b"refs/heads/"
    )
    hint = f"It has {', '.join(branches[:8])}." if branches else "It has none."
    raise SourceAway(f"{wish.url} has no branch {wish.branch or 'to begin with'!r}. {hint}")


def branch_name(ref: bytes, symrefs: Mapping[Any, bytes]) -> str:
    """Return `main` for `refs/heads/main`, or for a HEAD that points there."""
    target = symrefs.get(ref, ref)
    return target.decode(errors="replace").removeprefix("refs/heads/").removeprefix("refs/tags/")


def guarded_manager(guard: Guard) -> Any:
    """Return a pool manager of urllib3: guarded, redirects too, and limited in bytes and time."""
    import urllib3
    from urllib3 import connection, connectionpool

    def connect(its: Any) -> Any:
        return guard.connect(its.host, its.port, QUIET_SECONDS)

    def pool(kind: type, of: type) -> type:
        guarded = type(of.__name__, (of,), {"_new_conn": connect})
        return type(kind.__name__, (kind,), {"ConnectionCls": guarded})

    made = urllib3.PoolManager(headers={"User-Agent": "git/2 (Groundnote)"})
    made.pool_classes_by_scheme = {
        "http": pool(connectionpool.HTTPConnectionPool, connection.HTTPConnection),
        "https": pool(connectionpool.HTTPSConnectionPool, connection.HTTPSConnection),
    }
    send, bounds = made.request, _Bounds()

    def request(method: str, url: str, **options: Any) -> Any:
        retries = urllib3.Retry(total=5, redirect=5, connect=0, read=0, status=0, other=0)
        response = send(method, url, retries=retries, **options)
        response.read = bounds.of(response.read)
        return response

    made.request = request
    return made


class _Bounds:
    """Limits of bytes and time over all responses of a fetch."""

    def __init__(self) -> None:
        self._left = MOST_PACKED
        self._ends = time.monotonic() + MOST_SECONDS

    def of(self, read: Any) -> Any:
        def bounded(amount: int | None = None, **options: Any) -> bytes:
            most = self._left + 1
            data = bytes(read(min(most, amount or most), **options))
            self._left -= len(data)
            if self._left < 0:
                raise TooLarge(f"The repository has more than {MOST_PACKED:,} bytes to fetch.")
            if time.monotonic() > self._ends:
                raise SourceAway(f"Fetching took more than {MOST_SECONDS:.0f} seconds.")
            return data

        return bounded


if __name__ == "__main__":
    main()
