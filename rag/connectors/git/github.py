"""A folder of a repository at GitHub as a source, over its REST API, without Git.

One request lists the whole repository. The sha of a file's content is its mark, and what it is
fetched by: no name can lead elsewhere, and what is read is what was listed.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from rag.connectors.git.repository import LARGE_FILE, POINTER
from rag.connectors.guard import Guard
from rag.connectors.kinds import masked
from rag.connectors.web.fetch import FetchedPage, Fetcher
from rag.documents.files import fit_name
from rag.documents.limits import MEBIBYTE
from rag.errors import SourceAway, TooLarge, Unreadable, UserError
from rag.seams import ListedFile, SourceOptions

API, PAGES = "https://api.github.com", "https://github.com"
LARGEST_LIST = 16 * MEBIBYTE  # GitHub cuts them off at 7
LINK = "120000"  # the mode of a symbolic link
RAW, PLAIN = "application/vnd.github.raw+json", "application/vnd.github+json"


@dataclass(frozen=True, slots=True)
class Repository:
    """Where files are, with the token that they are asked with."""

    name: str  # owner/name
    ref: str  # a branch, a tag or a commit; "" is the branch that GitHub shows
    folder: str
    token: str = ""


def read_address(address: str) -> Repository:
    """Raises UserError."""
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
    """Hidden files, links and submodules are left aside."""

    def __init__(self, repository: Repository, options: SourceOptions) -> None:
        self._repository = repository
        self._options = options
        most = max(options.max_bytes, LARGEST_LIST)
        self._fetcher = Fetcher(Guard(options.private_hosts), max_bytes=most)
        self._shas: dict[str, str] = {}

    def listed(self) -> Iterator[ListedFile]:
        """All files below the folder. Raises SourceAway where any of it cannot be seen."""
        try:
            yield from self._files()
        except (KeyError, TypeError, AttributeError) as error:
            raise self._away(f"its answer is of another form ({error})") from error

    def _files(self) -> Iterator[ListedFile]:
        at = self._repository
        ref = at.ref or str(self._json("")["default_branch"])
        tree = self._json(f"/git/trees/{quote(ref, safe='')}?recursive=1")
        if tree.get("truncated"):
            raise self._away(
                f"GitHub does not list all its files. Add git+{PAGES}/{at.name}.git instead"
            )
        self._shas = {}
        inside = f"{at.folder}/" if at.folder else ""
        for entry in tree["tree"]:
            path = str(entry["path"])
            name = fit_name(path.removeprefix(inside))
            is_file = entry["type"] == "blob" and entry["mode"] != LINK
            is_hidden = any(part.startswith(".") for part in name.split("/"))
            if not is_file or is_hidden or not path.startswith(inside) or name in self._shas:
                continue
            if len(self._shas) >= self._options.most_files:
                most = self._options.most_files
                raise self._away(
                    f"it has more than {most:,} files. Name a folder of it, or raise "
                    "sources.most_files"
                )
            self._shas[name] = str(entry["sha"])
            link = f"{PAGES}/{at.name}/blob/{quote(ref)}/{quote(path)}"
            yield ListedFile(name, self._shas[name], entry.get("size"), link)
        if inside and not self._shas:
            raise self._away(f"there is no file in {at.folder}")

    def read(self, file: ListedFile) -> bytes:
        """Raises Unreadable, TooLarge, and SourceAway."""
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
        try:
            data = json.loads(self._get(path, PLAIN).data)
        except ValueError as error:
            raise self._away("its answer is no JSON") from error
        if not isinstance(data, dict):
            raise self._away("its answer is of another form")
        return data

    def _get(self, path: str, form: str) -> FetchedPage:
        headers = {"Accept": form, "X-GitHub-Api-Version": "2022-11-28"}
        if self._repository.token:
            headers["Authorization"] = f"Bearer {self._repository.token}"
        answer = self._fetcher.get(f"{API}/repos/{self._repository.name}{path}", headers)
        if not answer.is_there:
            raise self._away(self._refused(answer))
        return answer

    def _refused(self, answer: FetchedPage) -> str:
        at, has_token = self._repository, bool(self._repository.token)
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
            seen = "that this token may read" if has_token else "that can be read without a token"
            ref = f" with {at.ref!r}" if at.ref else ""
            return f"there is no such repository{ref} {seen} ({answer.status})"
        return f"it answers {answer.status}"

    def _away(self, reason: str) -> SourceAway:
        return SourceAway(f"GitHub, {self._repository.name}: {reason}. Nothing is removed.")


def _until(answer: FetchedPage) -> str:
    """The time that GitHub gives, as an hour of UTC."""
    after, reset = (answer.headers.get(name, "") for name in ("retry-after", "x-ratelimit-reset"))
    moment = time.time() + int(after) if after.isdecimal() else 0
    moment = moment or (int(reset) if reset.isdecimal() else time.time() + 60)
    return time.strftime("%H:%M UTC", time.gmtime(moment))


def open_github(address: str, options: SourceOptions) -> GithubSource:
    """Raises UserError for an address that names no repository."""
    return GithubSource(read_address(address), options)
