"""A repository at GitHub as a source: kept in step, and none the poorer for what is refused."""

import time

import pytest

from rag.connectors.git import repository
from rag.connectors.git.repository import open_github, read_github_address
from rag.errors import SourceAway, TooLarge, UserError
from rag.records import SyncState
from rag.seams import SourceOptions
from tests.connectors.conftest import Office
from tests.connectors.remote.github_api import GithubApi, reset_at
from tests.connectors.remote.site import running

pytestmark = pytest.mark.slow

ADDRESS = "github://nornwick:manuals@main/docs"


def text(number):
    return f"# Pump {number}\n\nPump {number} weighs {number + 40} kg.\n".encode()


@pytest.fixture
def api(monkeypatch):
    with running(GithubApi()) as made:
        monkeypatch.setattr(repository, "API", made.url)
        made.files.update({f"docs/{n}.md": text(n) for n in range(4)})
        made.files["README.md"] = b"# Not of the folder\n"
        yield made


@pytest.fixture
def office(tmp_path):
    settings = {"private_hosts": ["127.0.0.1"], "passwords": {"gh": "s3cret"}}
    made = Office(tmp_path, sources=settings)
    yield made
    made.app.stop()


def listed(address=ADDRESS, **options):
    source = open_github(address, SourceOptions(private_hosts=("127.0.0.1",), **options))
    return source, {file.name: file for file in source.listed()}


def test_is_kept_in_step_and_fetches_only_what_is_new(office, api):
    told = office.add(address=ADDRESS)
    assert (told.state, told.source.counts.new) == (SyncState.IDLE, 4)
    assert set(office.texts()) == {"0.md", "1.md", "2.md", "3.md"}
    before, embedded = office.ids(), len(office.embedded)
    api.asked.clear()

    told = office.sync()
    assert (told.source.counts.unchanged, len(api.asked)) == (4, 1)
    assert len(office.embedded) == embedded

    api.files["docs/sub/moved.md"] = api.files.pop("docs/0.md")
    api.files["docs/1.md"] = text(9)
    del api.files["docs/2.md"]
    counts = office.sync().source.counts

    assert (counts.moved, counts.changed, counts.removed) == (1, 1, 1)
    assert office.ids() == {
        "sub/moved.md": before["0.md"], "1.md": before["1.md"], "3.md": before["3.md"],
    }  # fmt: skip
    assert "49 kg" in office.texts()["1.md"]
    link = office.documents()["sub/moved.md"].url
    assert link == "https://github.com/nornwick/manuals/blob/main/docs/sub/moved.md"


def test_used_up_requests_lose_nothing_and_a_later_sync_goes_on(office, api):
    api.left = 3  # the list and two files
    told = office.add(address=ADDRESS)

    hour = time.strftime("%H:%M UTC", time.gmtime(reset_at()))
    assert told.state is SyncState.AWAY
    assert f"no more requests until {hour}" in told.reason
    assert "?token={name}" in told.reason
    assert told.source.counts.failed == 0
    assert len(office.texts()) == 2

    assert office.sync().state is SyncState.AWAY
    assert len(office.texts()) == 2

    api.left = 60
    assert office.sync().state is SyncState.IDLE
    assert len(office.texts()) == 4
    assert len(api.asked_for("blobs")) == 4


def test_a_limit_that_is_not_counted_says_when_too(api):
    api.limit_headers = {"Retry-After": "120"}
    with pytest.raises(SourceAway, match="no more requests until"):
        listed()


@pytest.mark.parametrize("body", ["[]", "no JSON", '{"tree": [{"path": "docs/a.md"}]}', "{}"])
def test_an_answer_of_another_form_is_told(api, body):
    api.get = lambda _path, _headers: (200, {"Content-Type": "application/json"}, body.encode())

    with pytest.raises(SourceAway, match="GitHub, nornwick/manuals: its answer is"):
        listed()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda api: setattr(api, "name", "nornwick/elsewhere"), "no such repository"),
        (lambda api: api.refs.pop("main"), "no such repository with 'main'"),
        (lambda api: setattr(api, "token", "x"), "that can be read without a token"),
        (lambda api: setattr(api, "is_truncated", True), "does not list all its files"),
        (lambda api: api.files.clear(), "(409)"),
        (lambda api: [api.files.pop(f"docs/{n}.md") for n in range(4)], "there is no file in docs"),
    ],
)
def test_what_is_gone_or_hidden_is_told_and_removes_nothing(office, api, change, told):
    office.add(address=ADDRESS)
    change(api)

    after = office.sync()

    assert after.state is SyncState.AWAY
    assert told in after.reason
    assert len(office.texts()) == 4


def test_a_private_one_is_read_with_a_token_of_the_settings(office, api):
    api.token = "s3cret"
    told = office.add(address=ADDRESS + "?token={gh}")

    assert told.state is SyncState.IDLE
    assert len(office.texts()) == 4
    assert "s3cret" not in repr(office.documents()) + repr(told)

    api.token = "another"  # it was taken back
    told = office.sync()
    assert (told.state, "token is refused (401)" in told.reason) == (SyncState.AWAY, True)
    assert "s3cret" not in told.reason
    assert len(office.texts()) == 4


def test_names_and_refs_are_as_they_are_written(api):
    names = ["C# notes.md", "50%.md", "what?.md", "Über uns.md"]
    api.refs["feature/New-UI"] = {name: name.encode() for name in names}
    source, files = listed("github://nornwick:manuals@feature%2FNew-UI/")

    assert sorted(files) == sorted(names)
    assert [source.read(files[name]).decode() for name in names] == names
    link = "https://github.com/nornwick/manuals/blob/feature/New-UI/C%23%20notes.md"
    assert files["C# notes.md"].url == link


def test_without_a_ref_it_is_the_branch_that_is_shown(api):
    _source, files = listed("github://nornwick:manuals@/docs")

    assert len(files) == 4


def test_links_submodules_and_hidden_files_are_left_aside(api):
    api.modes = {"docs/link.md": "120000", "docs/other": "160000"}
    left = dict.fromkeys(["docs/link.md", "docs/other", "docs/.env", "docs/.github/a.md"], b"x")
    api.files.update(left)

    _source, files = listed()

    assert sorted(files) == ["0.md", "1.md", "2.md", "3.md"]


def test_large_files_and_pointers_to_them_are_named_as_not_read(office, api):
    api.files["docs/0.md"] = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"
    office.add(address=ADDRESS)
    assert [each.name for each in office.files() if "Git LFS" in each.reason] == ["0.md"]

    api.files["docs/1.md"] = b"x" * 1_001
    source, files = listed(max_bytes=1_000)
    with pytest.raises(TooLarge):
        source.read(files["1.md"])


@pytest.mark.parametrize("address", ["github://x/", "github://a:@main/", "github://:b@main/"])
def test_what_names_no_repository_is_told(address):
    with pytest.raises(UserError, match=r"Write github://owner:name@branch/"):
        read_github_address(address)
