"""The part of GitHub's REST API that sources ask, on loopback, as its documentation says it is.

https://docs.github.com/rest/git/trees, …/git/blobs, …/repos/repos, …/using-the-rest-api/rate-limits
"""

import base64
import hashlib
import json
import time
from urllib.parse import unquote, urlsplit

from tests.connectors.remote.site import Site

LEAST = 60  # requests an hour of who brings no token


class GithubApi(Site):
    """One repository, whose branches and tags each hold files by their paths."""

    def __init__(self, name="nornwick/manuals", default="main"):
        super().__init__()
        self.name, self.default = name, default
        self.refs = {default: {}}
        self.token = ""  # that is needed, of a private one
        self.left = LEAST
        self.limit_headers = None  # of a limit that GitHub does not count down
        self.is_truncated = False
        self.modes = {}

    @property
    def files(self):
        return self.refs[self.default]

    def asked_for(self, kind):
        return [path for path, status in self.asked if f"/{kind}/" in path and status == 200]

    def get(self, path, headers):
        status, given, body = self._answer(path, headers)
        self.asked.append((path, status))
        self.headers.append(dict(headers))
        reset = {"X-RateLimit-Remaining": str(self.left), "X-RateLimit-Reset": str(reset_at())}
        return status, reset | given, body

    def _answer(self, path, headers):
        if headers.get("Authorization", "") not in ("", f"Bearer {self.token}"):
            return failed(401, "Bad credentials")
        if self.limit_headers is not None:
            status, body = 429, b"{}"
            return status, self.limit_headers, body
        if not self.left:
            return failed(403, "API rate limit exceeded")
        self.left -= 1
        if self.token and "Authorization" not in headers:
            return failed(404, "Not Found")
        inside = urlsplit(path).path.removeprefix(f"/repos/{self.name}")
        if inside == urlsplit(path).path:
            return failed(404, "Not Found")
        if not inside:
            return answered({"name": self.name, "default_branch": self.default})
        kind, _, named = inside.removeprefix("/git/").partition("/")
        if kind == "trees":
            return self._tree(unquote(named), is_whole="recursive=1" in path)
        return self._blob(named, headers.get("Accept", "")) if kind == "blobs" else failed(404, "")

    def _tree(self, ref, *, is_whole):
        assert is_whole
        if ref not in self.refs:
            return failed(404, "Not Found")
        files = self.refs[ref]
        if not files:
            return failed(409, "Git Repository is empty.")
        folders = {path.rpartition("/")[0] for path in files} - {""}
        tree = [{"path": f, "mode": "040000", "type": "tree", "sha": sha_of(f)} for f in folders]
        for path, data in files.items():
            mode = self.modes.get(path, "100644")
            kind = "commit" if mode == "160000" else "blob"
            entry = {"path": path, "mode": mode, "type": kind, "sha": sha_of(data)}
            tree.append(entry | ({"size": len(data)} if kind == "blob" else {}))
        return answered({"sha": sha_of(ref), "tree": tree, "truncated": self.is_truncated})

    def _blob(self, sha, form):
        found = {sha_of(data): data for files in self.refs.values() for data in files.values()}
        if sha not in found:
            return failed(404, "Not Found")
        if form == "application/vnd.github.raw+json":
            return 200, {"Content-Type": form}, found[sha]
        packed = base64.b64encode(found[sha]).decode()
        return answered({"sha": sha, "encoding": "base64", "content": packed})


def answered(body):
    return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()


def failed(status, message):
    return status, {"Content-Type": "application/json"}, json.dumps({"message": message}).encode()


def reset_at():
    return int(time.time()) // 3600 * 3600 + 3600


def sha_of(data):
    data = data.encode() if isinstance(data, str) else data
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
