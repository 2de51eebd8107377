"""Object stores, file servers and archives as sources: each real one gives what a folder gives."""

import asyncio
import sys
import threading
import time
import zipfile
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import httpx
import pytest

from rag.connectors.guard import Guard
from rag.connectors.stores import day_of_change, mark_of, open_store, place_of
from rag.errors import Forbidden, RagError, SetupError, SourceAway, TooLarge, Unreadable, UserError
from rag.seams import SourceOptions
from tests.waiting import LONG

PRIVATE = ("127.0.0.1", "localhost")
FILES = {"a.md": b"# A", "docs/deep/b ü.md": b"deep", "docs/empty.txt": b"", ".hidden/x.md": b"x"}
SHOWN = {name: data for name, data in FILES.items() if not name.startswith(".")}


def look(source):
    return {file.name: (file.mark, source.read(file)) for file in source.listed()}


def contents(source):
    return {name: data for name, (_mark, data) in look(source).items()}


# ── What a test can write to, and the address of it ──────────────────────────────────────────


class OnDisk:
    """A folder that a server hands out."""

    def __init__(self, folder, address):
        self.folder, self.address = folder, address
        self.options = SourceOptions(private_hosts=PRIVATE, most_files=100, max_bytes=1000)

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def delete(self, name):
        (self.folder / name).unlink()

    def open(self):
        return open_store(self.address, self.options)


@contextmanager
def in_memory(_tmp_path, _monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    system = MemoryFileSystem()
    system.store.clear()
    system.pseudo_dirs[:] = [""]

    class Place(OnDisk):
        def write(self, name, data):
            system.pipe_file(f"/shared/{name}", data)

        def delete(self, name):
            system.rm(f"/shared/{name}")

    yield Place(None, "memory://shared")


@contextmanager
def over_webdav(tmp_path, _monkeypatch):
    from wsgiref.simple_server import make_server

    from wsgidav.wsgidav_app import WsgiDAVApp

    from tests.connectors.remote.quiet import Quiet

    (tmp_path / "shared").mkdir()
    application = WsgiDAVApp(
        {"provider_mapping": {"/": str(tmp_path)}, "verbose": 0, "logging": {"enable": False},
         "simple_dc": {"user_mapping": {"*": {"me": {"password": "p w"}}}}}
    )  # fmt: skip
    server = make_server("127.0.0.1", 0, application, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    port = server.server_port
    yield OnDisk(tmp_path / "shared", f"webdav://me:p%20w@127.0.0.1:{port}/shared")
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def over_sftp(tmp_path, monkeypatch):
    import asyncssh

    folder = tmp_path / "shared"
    folder.mkdir()
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "home")
    key = asyncssh.generate_private_key("ssh-ed25519")
    loop, ready, server = asyncio.new_event_loop(), threading.Event(), []

    class Anyone(asyncssh.SSHServer):
        def begin_auth(self, _username):
            return True

        def password_auth_supported(self):
            return True

        def validate_password(self, username, password):
            return (username, password) == ("me", "secret")

    async def serve():
        server.append(
            await asyncssh.create_server(
                Anyone, "127.0.0.1", 0, server_host_keys=[key],
                sftp_factory=lambda chan: asyncssh.SFTPServer(chan, chroot=str(tmp_path)),
            )
        )  # fmt: skip
        ready.set()

    def run():
        asyncio.set_event_loop(loop)
        loop.create_task(serve())
        loop.run_forever()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(LONG)
    port = server[0].get_port()
    public = key.export_public_key().decode()
    known = tmp_path / "home" / ".ssh" / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {public}\n127.0.0.1 {public}")
    yield OnDisk(folder, f"sftp://me:secret@127.0.0.1:{port}/shared")
    loop.call_soon_threadsafe(server[0].close)
    time.sleep(0)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@contextmanager
def in_s3(_tmp_path, monkeypatch):
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    for name, value in (("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x"),
                        ("AWS_DEFAULT_REGION", "us-east-1"),
                        ("AWS_ENDPOINT_URL", url)):  # fmt: skip
        monkeypatch.setenv(name, value)
    httpx.post(f"{url}/moto-api/reset").raise_for_status()  # all servers of a process share it
    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket="manuals")

    class Place(OnDisk):
        def write(self, name, data):
            client.put_object(Bucket="manuals", Key=f"shared/{name}", Body=data)

        def delete(self, name):
            client.delete_object(Bucket="manuals", Key=f"shared/{name}")

    yield Place(None, "s3://manuals/shared")
    server.stop()


@contextmanager
def in_a_zip(tmp_path, _monkeypatch):
    class Place(OnDisk):
        def __init__(self):
            super().__init__(None, f"zip://{tmp_path}/all.zip")
            self.files = {}

        def write(self, name, data):
            self.files[name] = data
            with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
                for each, content in self.files.items():
                    archive.writestr(zipfile.ZipInfo(each, (2024, 1, 1, 0, 0, 0)), content)

        def delete(self, name):
            self.files.pop(name)
            (first, data) = next(iter(self.files.items()))
            self.write(first, data)

    yield Place()


SLOW = [pytest.param(each, marks=pytest.mark.slow) for each in (over_webdav, over_sftp, in_s3)]


@pytest.fixture(params=[in_memory, in_a_zip, *SLOW])
def place(request, tmp_path, monkeypatch):
    with request.param(tmp_path, monkeypatch) as made:
        yield made


class TestEveryPlace:
    def test_gives_its_files(self, place):
        for name, data in FILES.items():
            place.write(name, data)

        assert contents(place.open()) == SHOWN

    def test_marks_what_changed_and_nothing_else(self, place, monkeypatch):
        place.write("a.md", b"one")
        place.write("b.md", b"two")
        monkeypatch.setattr("rag.connectors.stores.CERTAIN_SECONDS", -1)
        first = look(place.open())
        assert look(place.open()) == first
        assert all(mark for mark, _data in first.values())
        time.sleep(1.1)  # a server that tells whole seconds only
        place.write("a.md", b"neu")
        place.delete("b.md")
        second = look(place.open())

        assert list(second) == ["a.md"]
        assert second["a.md"][0] != first["a.md"][0]
        assert second["a.md"][1] == b"neu"

    def test_tells_what_is_too_large_or_went_meanwhile(self, place):
        place.write("large.md", b"x" * 2000)
        place.write("other.md", b"x")
        source = place.open()
        found = {file.name: file for file in source.listed()}
        with pytest.raises(TooLarge, match="1,000"):
            source.read(found["large.md"])
        place.delete("other.md")

        if not place.address.startswith("zip"):  # which is held open
            with pytest.raises((Unreadable, SourceAway)):
                source.read(found["other.md"])

    def test_with_too_many_files_is_refused_whole(self, place):
        for number in range(4):
            place.write(f"{number}.md", b"x")
        place.options = SourceOptions(private_hosts=PRIVATE, most_files=3)

        with pytest.raises(SourceAway, match="more than 3 files"):
            list(place.open().listed())

    def test_of_which_the_folder_is_gone_removes_nothing(self, place):
        place.write("a.md", b"x")
        place.address = place.address.replace("shared", "gone").replace("all.zip", "gone.zip")

        with pytest.raises(SourceAway):
            list(place.open().listed())


def test_a_server_that_refuses_the_login_is_away(tmp_path, monkeypatch):
    for opened in (over_webdav, over_sftp):
        (tmp_path / opened.__name__).mkdir()
        with opened(tmp_path / opened.__name__, monkeypatch) as place:
            place.address = place.address.replace("secret", "wrong").replace("p%20w", "wrong")
            with pytest.raises(SourceAway) as told:
                list(place.open().listed())
            assert "wrong" not in str(told.value)


def test_a_file_server_whose_key_is_not_known_is_away(tmp_path, monkeypatch):
    with over_sftp(tmp_path, monkeypatch) as place:
        (tmp_path / "home" / ".ssh" / "known_hosts").write_text("")

        with pytest.raises(SourceAway):
            list(place.open().listed())


def test_links_on_a_file_server_are_left_aside(tmp_path, monkeypatch):
    with over_sftp(tmp_path, monkeypatch) as place:
        place.write("a.md", b"a")
        (tmp_path / "secret.md").write_bytes(b"secret")
        (place.folder / "link.md").symlink_to(tmp_path / "secret.md")
        (place.folder / "around").symlink_to(tmp_path)

        assert contents(place.open()) == {"a.md": b"a"}


@pytest.mark.parametrize(
    "address",
    ["simplecache::file:///etc", "filecache::s3://b", "zip://*.zip::file:///srv", "file:///etc",
     "local:///etc", "http://127.0.0.1/", "https://example.com/", "ftp://x/", "reference://x",
     "cached::memory://", "dir::file:///", "jupyter://x", "git:///srv", "libarchive:///x", "root://x",
     "tar:///etc/x.tar", "blockcache::memory://x", "generic://x", "arrow_hdfs://x", "data:text,x"],
)  # fmt: skip
def test_ways_around_are_refused(address):
    with pytest.raises(UserError):
        open_store(address, SourceOptions())


@pytest.mark.parametrize(
    "address",
    ["sftp://127.0.0.1/", "sftp://2130706433/x", "ssh://localhost/", "smb://10.0.0.1/share",
     "webdav://169.254.169.254/", "webdavs://[::1]/", "dav://192.168.0.1:8080/", "smb://[fe80::1]/s"],
)  # fmt: skip
def test_this_network_is_refused(address):
    with pytest.raises(Forbidden):
        open_store(address, SourceOptions())


def test_what_was_checked_is_what_is_connected_to(monkeypatch):
    found = [(2, 1, 6, "", ("93.184.216.34", 22))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_kwargs: found)
    for address in ("sftp://files.test/x", "smb://files.test/share"):
        assert place_of(address, Guard(ports=None)).options["host"] == "93.184.216.34"
    assert (
        place_of("sftp://files.test/x", Guard(ports=None)).options["host_key_alias"] == "files.test"
    )


@pytest.mark.parametrize(
    ("address", "extra"), [("gs://b/x", "gcs"), ("abfs://c@a.dfs.core.windows.net/", "azure")]
)
def test_a_package_that_is_missing_is_named(address, extra, monkeypatch):
    def missing(_name):
        raise ImportError("no such module")

    monkeypatch.setattr("fsspec.get_filesystem_class", missing)
    with pytest.raises(SetupError, match=rf"groundnote\[{extra}\]"):
        open_store(address, SourceOptions())


def test_a_login_at_a_server_is_nobody_elses(monkeypatch):
    """Its client asks for no password where a connection is open, whoever comes."""
    closed = []
    client = SimpleNamespace(delete_session=lambda host, port: closed.append((host, port)))
    monkeypatch.setitem(sys.modules, "smbclient", client)
    monkeypatch.setattr("fsspec.get_filesystem_class", lambda _name: lambda **_options: None)
    options = SourceOptions(private_hosts=PRIVATE)

    one = open_store("smb://ada:right@127.0.0.1/docs", options)
    same = open_store("smb://ada:right@127.0.0.1/docs/b", options)
    for address in ("smb://ada:wrong@127.0.0.1/docs", "smb://127.0.0.1/docs"):
        with pytest.raises(SourceAway, match="another login"):
            open_store(address, options)
    one.close()
    assert closed == []
    same.close()

    assert closed == [("127.0.0.1", 445)]
    open_store("smb://ada:wrong@127.0.0.1/docs", options).close()


@pytest.mark.parametrize("address", ["sftp://", "smb:///x", "webdav://h:99999999/"])
def test_what_names_nothing_is_told(address):
    with pytest.raises(RagError):
        open_store(address, SourceOptions())


def test_marks_are_of_content_where_it_is_known():
    assert mark_of({"ETag": '"abc"', "size": 3, "LastModified": "x"}) == "abc-3"
    assert mark_of({"mtime": 1_000_000.5, "size": 3}) == "1000000.5-3"
    assert mark_of({"mtime": time.time(), "size": 3}) == ""  # the next version may have it, too
    assert mark_of({"size": 3}) == ""


def test_the_day_of_a_change_is_told_as_each_file_system_writes_it():
    noon = datetime(2024, 3, 9, 12, tzinfo=UTC)

    assert day_of_change({"mtime": noon.timestamp()}) == "2024-03-09"
    assert day_of_change({"LastModified": noon}) == "2024-03-09"
    assert day_of_change({"updated": "2024-03-09T12:00:00Z"}) == "2024-03-09"
    assert day_of_change({"mtime": 1e300}) == ""
    assert day_of_change({"size": 3}) == ""
