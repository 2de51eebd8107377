"""A branch of a Git repository as a source: its files, each with the id of its content."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from rag.connectors.git.fetch_process import HISTORY, Wish, fetch
from rag.connectors.guard import Guard
from rag.documents.cleaning import clean
from rag.errors import SourceAway, TooLarge, Unreadable, UserError
from rag.seams import ListedFile, SourceOptions

FOLDER = "repository.git"
MOST_PACKS = 40  # fetched one after another: then it is fetched whole, once
KIND_BITS, PLAIN, FOLDER_BITS, REPOSITORY = 0o170000, 0o100000, 0o040000, 0o160000
POINTER = b"version https://git-lfs.github.com/spec/"
DEEPEST = 64
SUBMODULE = "this is a repository of its own (a submodule). Add it as a source of its own."
LARGE_FILE = "the repository holds only a pointer to it (Git LFS), which is not followed."


@dataclass(frozen=True, slots=True)
class GitAddress:
    """A repository and the branch of it."""

    url: str  # without a login
    branch: str = ""
    username: str = ""
    password: str = ""

    @property
    def local(self) -> Path | None:
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None


def read_address(address: str) -> GitAddress:
    """Raises UserError."""
    plain, _, branch = address.strip().partition("#")
    plain = plain.removeprefix("git+")
    parts = urlsplit(plain)
    if parts.scheme not in ("http", "https", "file"):
        raise UserError(
            f"{parts.scheme or plain[:60]}: of Git repositories https:// is read, and file:// on "
            "the server's own disk. Write git+https://host/owner/name.git#branch."
        )
    if re.search(r"[\x00-\x20\x7f]", branch) or branch.startswith(("-", "/")) or ".." in branch:
        raise UserError(f"{branch[:60]!r} is no name of a branch.")
    host = parts.netloc.rpartition("@")[2]
    login = unquote(parts.username or ""), unquote(parts.password or "")
    return GitAddress(urlunsplit((parts.scheme, host, parts.path, "", "")), branch, *login)


class GitSource:
    """Hidden files, links and what other repositories hold are left aside."""

    def __init__(self, address: GitAddress, options: SourceOptions) -> None:
        self._address = address
        self._options = options
        self._own = None if options.aside else Path(tempfile.mkdtemp(prefix="groundnote-git-"))
        self._folder = (options.aside or self._own or Path()) / FOLDER
        self._repository: Any = None

    def listed(self) -> Iterator[ListedFile]:
        """Each file of the branch as it is now. Raises UserError and SourceAway."""
        branch, commit = self._latest()
        link = forge_link(self._address.url, branch)
        try:
            tree = self._repository[commit.encode()].tree
            changes = self._changes(commit.encode())
            for count, (name, mode, blob) in enumerate(self._walk(tree, "", 0)):
                if count >= self._options.most_files:
                    most = self._options.most_files
                    raise SourceAway(
                        f"{self._address.url} has more than {most:,} files (sources.most_files)."
                    )
                mark = blob.decode() if mode & KIND_BITS == PLAIN else f"submodule {blob.decode()}"
                author, day = changes.get(name, ("", ""))
                url = link + quote(name) if link else ""
                yield ListedFile(name, mark, None, url, author=author, date=day)
        except (KeyError, ValueError, AttributeError) as error:
            self._forget()
            raise SourceAway(f"{self._address.url} is damaged where it was kept.") from error

    def _changes(self, commit: bytes) -> dict[str, tuple[str, str]]:
        """Who changed each file last, and on which day, as far back as the history is here."""
        results: dict[str, tuple[str, str]] = {}
        oldest = self._repository.get_shallow()  # what they changed is not known
        for entry in self._repository.get_walker(include=[commit], max_entries=HISTORY):
            found = entry.commit
            if found.id in oldest or len(found.parents) > 1:
                continue
            author = found.author.decode("utf-8", "replace").partition("<")[0].strip()
            day = datetime.fromtimestamp(found.author_time, UTC).date().isoformat()
            for change in entry.changes():
                path = change.new.path if change.new else None
                if path:
                    results.setdefault(path.decode("utf-8", "replace"), (author, day))
        return results

    def _latest(self) -> tuple[str, str]:
        from dulwich.errors import NotGitRepository
        from dulwich.repo import Repo

        self._let_go()
        path = self._address.local
        try:
            if path is not None:
                self._repository = Repo(str(path))
                return self._local_branch()
            self._tidy()
            wish = Wish(
                self._address.url, str(self._folder), self._address.branch,
                self._address.username, self._address.password, self._options.private_hosts,
            )  # fmt: skip
            found = fetch(wish)
            self._repository = Repo(str(self._folder))
        except (NotGitRepository, FileNotFoundError) as error:
            raise SourceAway(f"{self._address.url}: there is no Git repository.") from error
        return found

    def _local_branch(self) -> tuple[str, str]:
        from rag.connectors.git.fetch_process import branch_name, choose

        refs = {bytes(name): bytes(value) for name, value in self._repository.get_refs().items()}
        name, commit = choose(refs, Wish(self._address.url, "", self._address.branch))
        return branch_name(name, self._repository.refs.get_symrefs()), commit.decode()

    def _tidy(self) -> None:
        """What was kept is dropped when much of it is old, or it is not whole."""
        packs = list(self._folder.glob("objects/pack/*.pack"))
        is_whole = (self._folder / "HEAD").is_file() or not self._folder.exists()
        if len(packs) > MOST_PACKS or not is_whole:
            self._forget()
        self._folder.parent.mkdir(parents=True, exist_ok=True)

    def _walk(self, tree: bytes, prefix: str, depth: int) -> Iterator[tuple[str, int, bytes]]:
        if depth > DEEPEST:
            return
        for entry in self._repository[tree].items():
            part = clean(entry.path.decode("utf-8", "replace")).replace("\n", " ").strip()
            if not part or part.startswith(".") or "/" in part:
                continue
            kind = entry.mode & KIND_BITS
            if kind == FOLDER_BITS:
                yield from self._walk(entry.sha, f"{prefix}{part}/", depth + 1)
            elif kind in (PLAIN, REPOSITORY):
                yield prefix + part, entry.mode, entry.sha

    def read(self, file: ListedFile) -> bytes:
        """Raises Unreadable and TooLarge."""
        if file.mark.startswith("submodule "):
            raise Unreadable(file.name, SUBMODULE)
        try:
            data = bytes(self._repository[file.mark.encode()].data)
        except KeyError as error:
            raise Unreadable(file.name, "it is not there any more.") from error
        if len(data) > self._options.max_bytes:
            most = self._options.max_bytes
            raise TooLarge(f"{file.name}: has {len(data):,} bytes, the limit is {most:,}.")
        if data.startswith(POINTER) and len(data) < 1024:
            raise Unreadable(file.name, LARGE_FILE)
        return data

    def close(self) -> None:
        self._let_go()
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)

    def _let_go(self) -> None:
        if self._repository is not None:
            self._repository.close()
            self._repository = None

    def _forget(self) -> None:
        self._let_go()
        if self._address.local is None:
            shutil.rmtree(self._folder, ignore_errors=True)


def forge_link(url: str, branch: str) -> str:
    """Where the files of a branch are opened, as far as the host is known; ends with a slash."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    base = f"{url.rstrip('/').removesuffix('.git')}/"
    of_branch = quote(branch, safe="/")
    if parts.scheme == "file" or not of_branch:
        return ""
    if host == "github.com" or host.startswith("github."):
        return f"{base}blob/{of_branch}/"
    if "gitlab" in host:
        return f"{base}-/blob/{of_branch}/"
    if any(word in host for word in ("gitea", "forgejo", "codeberg.org")):
        return f"{base}src/branch/{of_branch}/"
    return f"{base}src/{of_branch}/" if host == "bitbucket.org" else ""


def open_git(address: str, options: SourceOptions) -> GitSource:
    """Raises UserError for what is no repository that may be read."""
    found = read_address(address)
    if found.local is None:
        place = urlsplit(found.url)
        port = place.port or {"http": 80, "https": 443}[place.scheme]
        with suppress(SourceAway):  # told at the first sync, and tried again
            Guard(options.private_hosts).addresses(place.hostname or "", port)
    return GitSource(found, options)
