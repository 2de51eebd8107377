"""A branch of a repository as a source."""

import os
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from dulwich.objects import Blob, Commit, Tree
from dulwich.repo import Repo

from rag.connectors.git import open_git
from rag.connectors.git.repository import forge_link, read_address
from rag.errors import Forbidden, SourceAway, TooLarge, Unreadable, UserError
from rag.seams import SourceOptions

pytestmark = pytest.mark.slow

PRIVATE = ("127.0.0.1",)
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n".format("a" * 64)


class Project:
    """A repository on loopback; each `commit` says what all of its files are."""

    def __init__(self, folder):
        self.path = folder / "project.git"
        self.repository = Repo.init_bare(str(self.path), mkdir=True)
        self.asked: list[str] = []

    def commit(self, files, branch="main", author=("A", None), **modes):
        tree = self._tree({tuple(name.split("/")): data for name, data in files.items()}, modes)
        made = Commit()
        made.tree = tree
        made.author = made.committer = f"{author[0]} <a@b.c>".encode()
        made.author_time = made.commit_time = author[1] or int(time.time())
        made.author_timezone = made.commit_timezone = 0
        made.message = b"As it is now"
        ref = b"refs/heads/" + branch.encode()
        made.parents = [self.repository.refs[ref]] if ref in self.repository.refs else []
        self.repository.object_store.add_object(made)
        self.repository.refs[ref] = made.id
        self.repository.refs.set_symbolic_ref(b"HEAD", b"refs/heads/main")
        return made.id

    def _tree(self, files, modes):
        tree, below = Tree(), {}
        for parts, data in files.items():
            if len(parts) > 1:
                below.setdefault(parts[0], {})[parts[1:]] = data
                continue
            blob = Blob.from_string(data.encode() if isinstance(data, str) else data)
            mode = modes.get(parts[0].replace(".", "_"), 0o100644)
            if mode == 0o160000:
                tree.add(parts[0].encode(), mode, b"1" * 40)
                continue
            self.repository.object_store.add_object(blob)
            tree.add(parts[0].encode(), mode, blob.id)
        for name, inner in below.items():
            tree.add(name.encode(), 0o040000, self._tree(inner, modes))
        self.repository.object_store.add_object(tree)
        return tree.id


def git_server(project) -> type[BaseHTTPRequestHandler]:
    """Git's own server, which speaks CGI."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            project.asked.append(path.rpartition("/")[2])
            length = self.headers.get("Content-Length", "0")
            environment = os.environ | {
                "GIT_PROJECT_ROOT": str(project.path.parent), "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": length,
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }  # fmt: skip
            asked = self.rfile.read(int(length))
            answer = subprocess.run(
                ["git", "http-backend"], input=asked, env=environment, capture_output=True
            ).stdout
            head, _, body = answer.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200")[:3]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_args) -> None:
            pass

    return Handler


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), git_server(made))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}/project.git"
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def look(address, aside=None, **options):
    options = {"private_hosts": PRIVATE} | options
    source = open_git(address, SourceOptions(aside=aside, **options))
    try:
        return {file.name: (file.mark, _read(source, file)) for file in source.listed()}
    finally:
        source.close()


def _read(source, file):
    try:
        return source.read(file)
    except (Unreadable, TooLarge) as error:
        return error


class TestABranch:
    def test_gives_its_files_with_the_ids_of_their_content(self, project):
        project.commit({"README.md": "# Hi", "docs/a/deep.md": "deep", "ü b.txt": "x"})
        found = look(f"git+{project.url}")

        assert {name: data for name, (_mark, data) in found.items()} == {
            "README.md": b"# Hi", "docs/a/deep.md": b"deep", "ü b.txt": b"x",
        }  # fmt: skip
        assert found["README.md"][0] == Blob.from_string(b"# Hi").id.decode()

    def test_is_the_one_that_was_named(self, project):
        project.commit({"a.md": "main"})
        project.commit({"a.md": "next"}, branch="release/2.0")

        assert look(project.url)["a.md"][1] == b"main"
        assert look(f"{project.url}#release/2.0")["a.md"][1] == b"next"

    def test_that_is_not_there_is_told_with_those_that_are(self, project):
        project.commit({"a.md": "main"})

        with pytest.raises(SourceAway, match=r"'mian'.*It has main"):
            look(f"{project.url}#mian")

    def test_leaves_links_and_hidden_files_aside_and_tells_of_what_is_elsewhere(self, project):
        project.commit(
            {"a.md": "a", "link": "../../etc/passwd", "other": "", ".github/x.yml": "x",
             "film.mp4": POINTER},
            link=0o120000, other=0o160000,
        )  # fmt: skip
        found = {name: data for name, (_mark, data) in look(project.url).items()}

        assert sorted(found) == ["a.md", "film.mp4", "other"]
        assert "submodule" in str(found["other"])
        assert "Git LFS" in str(found["film.mp4"])

    def test_with_names_that_lead_out_leads_nowhere(self, project):
        project.commit({"../x": "1", "..": "2", "a\nb\x1b.md": "3", "ok.md": "4"})

        for name in look(project.url):
            assert not {"..", "."} & set(name.split("/"))
            assert name.isprintable()


class TestTheNextLook:
    def test_fetches_only_what_is_new(self, project, tmp_path):
        aside = tmp_path / "aside"
        project.commit({"a.md": "a", "big.txt": os.urandom(300_000)})
        first = look(project.url, aside)
        project.asked.clear()
        assert look(project.url, aside) == first
        assert "git-upload-pack" not in project.asked or project.asked.count("git-upload-pack") <= 1
        before = sum(pack.stat().st_size for pack in aside.rglob("*.pack"))
        project.commit({"a.md": "b", "big.txt": first["big.txt"][1]})
        second = look(project.url, aside)

        assert second["a.md"][1] == b"b"
        assert second["big.txt"] == first["big.txt"]
        assert sum(pack.stat().st_size for pack in aside.rglob("*.pack")) - before < 10_000

    def test_follows_a_branch_whose_history_was_rewritten(self, project, tmp_path):
        aside = tmp_path / "aside"
        project.commit({"a.md": "a"})
        look(project.url, aside)
        del project.repository.refs[b"refs/heads/main"]
        project.commit({"b.md": "b"})

        assert sorted(look(project.url, aside)) == ["b.md"]

    def test_mends_what_was_kept_and_is_damaged(self, project, tmp_path):
        aside = tmp_path / "aside"
        project.commit({"a.md": "a"})
        look(project.url, aside)
        (aside / "repository.git" / "HEAD").unlink()

        assert sorted(look(project.url, aside)) == ["a.md"]

    def test_of_a_repository_that_is_gone_removes_nothing(self, project, tmp_path):
        project.commit({"a.md": "a"})
        look(project.url, tmp_path / "aside")

        with pytest.raises(SourceAway):
            look(project.url.replace("project", "gone"), tmp_path / "aside")


class TestBounds:
    def test_of_files(self, project):
        project.commit({f"{number}.md": "x" for number in range(5)})

        with pytest.raises(SourceAway, match="more than 4 files"):
            look(project.url, most_files=4)

    def test_of_a_file(self, project):
        project.commit({"a.md": "x" * 1000})

        assert "the limit is 999" in str(look(project.url, max_bytes=999)["a.md"][1])

    def test_of_memory_for_a_file_of_nothing_but_zeros(self, project, monkeypatch):
        monkeypatch.setattr("rag.connectors.git.fetch_process.MOST_MEMORY", 150_000_000)
        project.commit({"a.md": "a"})
        assert list(look(project.url)) == ["a.md"]
        project.commit({"bomb.txt": b"\0" * 100_000_000, "a.md": "a"})

        with pytest.raises(SourceAway, match="too large"):
            look(project.url)


class TestTheGuard:
    @pytest.mark.parametrize(
        "address",
        ["git+http://127.0.0.1/x.git", "https://localhost/x.git", "http://[::1]/x.git",
         "git+https://169.254.169.254/x.git", "https://2130706433/x.git", "http://10.0.0.1:22/x.git"],
    )  # fmt: skip
    def test_refuses_this_network(self, address):
        with pytest.raises(Forbidden):
            open_git(address, SourceOptions())

    @pytest.mark.parametrize(
        "address",
        ["git://example.com/x.git", "ssh://git@example.com/x.git", "git+ssh://example.com/x.git",
         "ext::sh -c whoami", "git@example.com:x/y.git", "--upload-pack=x", "git+ftp://x/y.git",
         "https://example.com/x.git#--upload-pack=x", "https://example.com/x.git#a..b"],
    )  # fmt: skip
    def test_and_ways_that_go_around_it(self, address):
        with pytest.raises(UserError):
            open_git(address, SourceOptions())

    def test_checks_a_redirect_anew(self, site):
        site["/x.git/info/refs?service=git-upload-pack"] = (
            302, {"Location": "http://127.0.0.2/x.git/info/refs?service=git-upload-pack"}, "",
        )  # fmt: skip

        with pytest.raises(Forbidden, match=r"127\.0\.0\.2"):
            look(f"{site.url}/x.git")

    def test_connects_to_what_was_checked_only(self, project):
        project.commit({"a.md": "a"})

        with pytest.raises(Forbidden):
            look(project.url, private_hosts=())


def test_a_repository_on_this_disk_is_read_where_it_lies(project, tmp_path):
    project.commit({"a.md": "a"})

    assert look(f"git+file://{project.path}")["a.md"][1] == b"a"
    with pytest.raises(SourceAway):
        look(f"git+file://{tmp_path}/none")


def test_a_login_is_used_and_not_told():
    found = read_address("https://me:to%40ken@git.test/a/b.git#main")

    assert (found.url, found.branch, found.username, found.password) == (
        "https://git.test/a/b.git", "main", "me", "to@ken",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("url", "link"),
    [("https://github.com/o/r.git", "https://github.com/o/r/blob/main/"),
     ("https://gitlab.example.org/g/s/r", "https://gitlab.example.org/g/s/r/-/blob/main/"),
     ("https://codeberg.org/o/r.git", "https://codeberg.org/o/r/src/branch/main/"),
     ("https://bitbucket.org/o/r.git", "https://bitbucket.org/o/r/src/main/"),
     ("https://git.example.org/r.git", ""), ("file:///srv/r.git", "")],
)  # fmt: skip
def test_files_are_opened_where_people_read_them(url, link):
    assert forge_link(url, "main") == link


class TestWhoChangedAFile:
    def changed(self, address, aside=None):
        source = open_git(address, SourceOptions(aside=aside, private_hosts=PRIVATE))
        try:
            return {file.name: (file.author, file.date) for file in source.listed()}
        finally:
            source.close()

    def test_is_told_with_the_day(self, project, tmp_path):
        project.commit({"a.md": "1", "b/c.md": "1"}, author=("Ines Vidal", 1_700_000_000))
        project.commit({"a.md": "2", "b/c.md": "1"}, author=("Tomas Berg", 1_710_000_000))
        expected = {
            "a.md": ("Tomas Berg", "2024-03-09"),
            "b/c.md": ("Ines Vidal", "2023-11-14"),
        }

        assert self.changed(f"file://{project.path}") == expected
        assert self.changed(f"git+{project.url}", tmp_path / "aside") == expected

    def test_is_not_known_of_what_is_older_than_the_history_that_is_fetched(
        self, project, tmp_path, monkeypatch
    ):
        monkeypatch.setattr("rag.connectors.git.repository.HISTORY", 1)
        project.commit({"a.md": "1", "b.md": "1"}, author=("Ines Vidal", 1_700_000_000))
        project.commit({"a.md": "2", "b.md": "1"}, author=("Tomas Berg", 1_710_000_000))

        assert self.changed(f"file://{project.path}") == {
            "a.md": ("Tomas Berg", "2024-03-09"),
            "b.md": ("", ""),
        }
