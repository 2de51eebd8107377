"""A branch of a Git repository as a source, by Git itself or over the REST API of GitHub.

One request lists the whole repository. The hash of a file's content is its mark and is used to
fetch it: no name can lead elsewhere, and what is read is what was listed.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit, urlunsplit

from rag.connectors.git.fetch_process import HISTORY, Wish, branch_name, choose, fetch
from rag.connectors.guard import Guard
from rag.connectors.kinds import masked
from rag.connectors.web.fetch import FetchedPage, Fetcher, refuse_private
from rag.documents.cleaning import clean
from rag.documents.files import fit_name
from rag.documents.limits import MEBIBYTE
from rag.errors import SourceAway, TooLarge, Unreadable, UserError
from rag.seams import ListedFile, SourceOptions

FOLDER = "repository.git"
MOST_PACKS = 40  # after so many incremental fetches it is cloned again
KIND_BITS, PLAIN, FOLDER_BITS, REPOSITORY = 0o170000, 0o100000, 0o040000, 0o160000
POINTER = b"version https://git-lfs.github.com/spec/"
DEEPEST = 64
SUBMODULE = "this is a repository of its own (a submodule). Add it as a source of its own."
LARGE_FILE = "the repository holds only a pointer to it (Git LFS), which is not followed."


def read_address(address: str) -> Wish:
    """Parse the address of a repository. Raises UserError."""
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
    return Wish(urlunsplit((parts.scheme, host, parts.path, "", "")), "", branch, *login)


class GitSource:
    """The files of a branch, without hidden files, links and submodules."""

    def __init__(self, address: Wish, options: SourceOptions) -> None:
        self._address = address
        self._options = options
        self._scratch = None if options.aside else Path(tempfile.mkdtemp(prefix="groundnote-git-"))
        self._folder = (options.aside or self._scratch or Path()) / FOLDER
        self._repository: Any = None

    def listed(self) -> Iterator[ListedFile]:
        """Yield each file of the branch. Raises UserError and SourceAway."""
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
        """Return who changed each file last, and when, as far as the history is fetched."""
        results: dict[str, tuple[str, str]] = {}
        oldest = self._repository.get_shallow()  # what these commits changed is not known
        for entry in self._repository.get_walker(include=[commit], max_entries=HISTORY):
            changeset = entry.commit
            if changeset.id in oldest or len(changeset.parents) > 1:
                continue
            author = changeset.author.decode("utf-8", "replace").partition("<")[0].strip()
            day = datetime.fromtimestamp(changeset.author_time, UTC).date().isoformat()
            for change in entry.changes():
                path = change.new.path if change.new else None
                if path:
                    results.setdefault(path.decode("utf-8", "replace"), (author, day))
        return results

    def _latest(self) -> tuple[str, str]:
        """Open the repository as it is now; return the branch and its commit."""
        from dulwich.errors import NotGitRepository
        from dulwich.repo import Repo

        self._let_go()
        address, path = self._address, self._address.local
        try:
            if path is not None:
                self._repository = Repo(str(path))
                items = self._repository.get_refs().items()
                refs = {bytes(name): bytes(value) for name, value in items}
                name, commit = choose(refs, address)
                return branch_name(name, self._repository.refs.get_symrefs()), commit.decode()
            # One that has many old packs, or is incomplete, is fetched anew.
            packs = list(self._folder.glob("objects/pack/*.pack"))
            is_whole = (self._folder / "HEAD").is_file() or not self._folder.exists()
            if len(packs) > MOST_PACKS or not is_whole:
                self._forget()
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            folder, hosts = str(self._folder), self._options.private_hosts
            fetched = fetch(replace(address, folder=folder, private_hosts=hosts))
            self._repository = Repo(folder)
        except (NotGitRepository, FileNotFoundError) as error:
            raise SourceAway(f"{address.url}: there is no Git repository.") from error
        return fetched

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
        """Return a file's bytes. Raises Unreadable and TooLarge."""
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
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _let_go(self) -> None:
        if self._repository is not None:
            self._repository.close()
            self._repository = None

    def _forget(self) -> None:
        self._let_go()
        if self._address.local is None:
            shutil.rmtree(self._folder, ignore_errors=True)


def forge_link(url: str, branch: str) -> str:
    """Return the base link of a branch's files for a known host, ending with a slash; else ""."""
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
    """Open a repository. Raises UserError for an address that is not allowed."""
    parsed = read_address(address)
    if parsed.local is None:
        refuse_private(parsed.url, options)
    return GitSource(parsed, options)


API, PAGES = "https://api.github.com", "https://github.com"
LARGEST_LIST = 16 * MEBIBYTE  # GitHub truncates them at 7 MiB
LINK = "120000"  # the mode of a symbolic link
RAW, PLAIN_ADDRESSES = "application/vnd.github.raw+json", "application/vnd.github+json"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository's name, ref and folder, with the token for the API."""

    name: str  # owner/name
    ref: str  # a branch, a tag or a commit; "" is the default branch
    folder: str
    token: str = ""


def read_github_address(address: str) -> Repository:
    """Parse an address on GitHub. Raises UserError."""
    parts = urlsplit(address)
    login, _, ref = parts.netloc.rpartition("@")
    owner, _, name = login.partition(":")
    if not owner or not name:
        raise UserError(
            f"{masked(address)[:100]} names no repository. Write github://owner:name@branch/."
        )
    token = parse_qs(parts.query).get("token", [""])[0]
    folder = unquote(parts.path).strip("/")
    return Repository(f"{quote(owner)}/{quote(name)}", unquote(ref), folder, token)


class GithubSource:
    """The files of a repository, without hidden files, links and submodules."""

    def __init__(self, repository: Repository, options: SourceOptions) -> None:
        self._repository = repository
        self._options = options
        most = max(options.max_bytes, LARGEST_LIST)
        self._fetcher = Fetcher(Guard(options.private_hosts), max_bytes=most)
        self._shas: dict[str, str] = {}

    def listed(self) -> Iterator[ListedFile]:
        """Yield all files below the folder. Raises SourceAway where a part cannot be listed."""
        repository, most = self._repository, self._options.most_files
        inside = f"{repository.folder}/" if repository.folder else ""
        try:
            ref = repository.ref or str(self._json("")["default_branch"])
            tree = self._json(f"/git/trees/{quote(ref, safe='')}?recursive=1")
            if tree.get("truncated"):
                url = f"git+{PAGES}/{repository.name}.git"
                raise self._away(f"GitHub does not list all its files. Add {url} instead")
            self._shas = {}
            for entry in tree["tree"]:
                path = str(entry["path"])
                name = fit_name(path.removeprefix(inside))
                is_file = entry["type"] == "blob" and entry["mode"] != LINK
                is_hidden = any(part.startswith(".") for part in name.split("/"))
                if not is_file or is_hidden or not path.startswith(inside) or name in self._shas:
                    continue
                if len(self._shas) >= most:
                    raise self._away(
                        f"it has more than {most:,} files. Name a folder of it, or raise "
                        "sources.most_files"
                    )
                self._shas[name] = str(entry["sha"])
                link = f"{PAGES}/{repository.name}/blob/{quote(ref)}/{quote(path)}"
                yield ListedFile(name, self._shas[name], entry.get("size"), link)
        except (KeyError, TypeError, AttributeError) as error:
            raise self._away(f"its answer is of another form ({error})") from error
        if inside and not self._shas:
            raise self._away(f"there is no file in {repository.folder}")

    def read(self, file: ListedFile) -> bytes:
        """Return a file's bytes. Raises Unreadable, TooLarge and SourceAway."""
        most, sha = self._options.max_bytes, self._shas.get(file.name)
        if sha is None:
            raise Unreadable(file.name, "it is not there any more.")
        is_large = file.size is not None and file.size > most
        data = b"" if is_large else self._get(f"/git/blobs/{quote(sha, safe='')}", RAW).data
        if is_large or len(data) > most:
            raise TooLarge(f"{file.name}: has more than {most:,} bytes, the limit.")
        if data.startswith(POINTER):
            raise Unreadable(file.name, LARGE_FILE)
        return data

    def close(self) -> None:
        self._fetcher.close()

    def _json(self, path: str) -> dict[str, Any]:
        return self._get(path, PLAIN_ADDRESSES).json_object(self._away)

    def _get(self, path: str, form: str) -> FetchedPage:
        headers = {"Accept": form, "X-GitHub-Api-Version": "2022-11-28"}
        if self._repository.token:
            headers["Authorization"] = f"Bearer {self._repository.token}"
        answer = self._fetcher.get(f"{API}/repos/{self._repository.name}{path}", headers)
        if not answer.is_there:
            raise self._away(self._refused(answer))
        return answer

    def _refused(self, answer: FetchedPage) -> str:
        repository, has_token = self._repository, bool(self._repository.token)
        is_limit = answer.headers.get("x-ratelimit-remaining") == "0"
        if answer.status in (403, 429) and (is_limit or "retry-after" in answer.headers):
            more = "" if has_token else (
                " With a token it answers 5,000 requests an hour instead of 60: add ?token={name}"
                " to the address"
            )  # fmt: skip
            return (
                f"GitHub answers no more requests until {_until(answer)}. What was read stays, and "
                f"a later sync goes on from there.{more}"
            )
        if answer.status == 401:
            return "the token is refused (401). See whether it is whole and has not expired"
        if answer.status == 403:
            return "the token may not read it (403)"
        if answer.status in (404, 409, 422):
            reach = "that this token may read" if has_token else "that can be read without a token"
            ref = f" with {repository.ref!r}" if repository.ref else ""
            return f"there is no such repository{ref} {reach} ({answer.status})"
        return f"it answers {answer.status}"

    def _away(self, reason: str) -> SourceAway:
        return SourceAway(f"GitHub, {self._repository.name}: {reason}. Nothing is removed.")


def _until(answer: FetchedPage) -> str:
    """Return the time until which GitHub refuses requests, as an hour in UTC."""
    after, reset = (answer.headers.get(name, "") for name in ("retry-after", "x-ratelimit-reset"))
    moment = time.time() + int(after) if after.isdecimal() else 0
    moment = moment or (int(reset) if reset.isdecimal() else time.time() + 60)
    return time.strftime("%H:%M UTC", time.gmtime(moment))


def open_github(address: str, options: SourceOptions) -> GithubSource:
    """Open a repository. Raises UserError for an address without a repository."""
    return GithubSource(read_github_address(address), options)
