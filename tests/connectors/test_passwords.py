"""Passwords that addresses name and settings hold; kinds that packages bring."""

from importlib.metadata import EntryPoint

import pytest
from pydantic import SecretStr

from rag.connectors import kinds
from rag.connectors.kinds import check_no_password, check_open, masked, with_password
from rag.errors import Forbidden, UserError
from rag.records import SyncState
from rag.settings import Settings, SourceSettings
from rag.wiring.stores import syncs_of
from tests.connectors.remote.site import Site, running
from tests.connectors.test_secrets import PAGE, locked

__all__ = ["locked"]
HELD = {"wiki": SecretStr("hu@sh/1")}


def test_are_put_in_where_they_are_named():
    assert with_password("https://ada:{wiki}@h.test/x", HELD) == "https://ada:hu%40sh%2F1@h.test/x"
    assert with_password("git+https://{wiki}@h.test/x", HELD) == "git+https://hu%40sh%2F1@h.test/x"


@pytest.mark.parametrize(
    "address",
    ["https://ada:old@h.test/", "https://h.test/{wiki}", "https://{wiki}:x@h.test/", "s3://{wiki}/x",
     "github://owner:{wiki}@main/"],
)  # fmt: skip
def test_are_put_in_nowhere_else(address):
    assert with_password(address, HELD) == address


def test_that_are_not_there_are_told():
    with pytest.raises(UserError, match=r"no password 'other' in the settings.*sources\.passwords"):
        with_password("https://ada:{other}@h.test/", HELD)


@pytest.mark.parametrize(
    "address", ["https://a:b@h.test/", "git+https://b@h.test/x.git", "smb://a:b@h.test/s",
                "confluence://me%40h.test:b@site.test/KEY"]
)  # fmt: skip
def test_are_not_written_out(address):
    with pytest.raises(UserError, match="not written into an address"):
        check_no_password(address)


@pytest.mark.parametrize(
    "address", ["https://a:{wiki}@h.test/", "sftp://a@h.test/", "github://a:b@main/", "/srv/a:b@c"]
)
def test_are_the_only_thing_that_is_refused(address):
    check_no_password(address)


def test_that_are_named_are_shown_as_they_are():
    assert masked("https://ada:{wiki}@h.test/x") == "https://ada:{wiki}@h.test/x"


def test_are_settings_that_no_output_shows(monkeypatch):
    monkeypatch.setenv("GROUNDNOTE_SOURCES__PASSWORDS", '{"wiki": "hush"}')

    held = Settings().sources.passwords
    assert held["wiki"].get_secret_value() == "hush"
    assert "hush" not in repr(held)


def test_of_a_site_are_told_to_it_by_a_sync(office_of, locked):
    locked["/docs/"] = PAGE.format("First", "")
    named = locked.url.replace("://", "://ada:{wiki}@") + "/docs/"
    office = office_of(sources={"private_hosts": ["127.0.0.1"], "passwords": {"wiki": "hush"}})

    told = office.add(address=named)

    assert (told.state, told.source.counts.new) == (SyncState.IDLE, 1)
    assert told.source.address == named


def test_that_were_written_out_before_still_work(office_of, locked):
    locked["/docs/"] = PAGE.format("First", "")
    office = office_of(sources={"private_hosts": ["127.0.0.1"]})
    office.add(address=locked.url + "/robots.txt")
    office.book.table.change(office.source.id, address=f"{locked.login}/docs/")

    assert office.sync().source.counts.new == 1


class TestKindsOfPackages:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch):
        point = EntryPoint("drive", "tests.fakes:open", kinds.GROUP_OF_KINDS)
        monkeypatch.setattr(kinds, "entry_points", lambda **_wanted: [point])

    def test_are_added_by_others_where_the_settings_name_them(self):
        check_open("drive://team/x", SourceSettings(kinds=("drive",)))

    def test_are_else_refused_by_name_with_what_to_set(self):
        with pytest.raises(Forbidden, match=r"drive://.*names drive in sources\.kinds"):
            check_open("drive://team/x", SourceSettings())


class TestInAQuery:
    """A token that an address carries."""

    @pytest.mark.parametrize("key", ["token", "sig", "X-Amz-Signature", "api_key"])
    def test_is_put_in_where_it_is_named(self, key):
        address = f"https://h.test/feed?lang=de&{key}={{wiki}}#x"

        opened = f"https://h.test/feed?lang=de&{key}=hu%40sh%2F1#x"
        assert with_password(address, HELD) == opened
        assert masked(address) == address
        assert "hu%40" not in masked(opened)

    def test_is_put_in_beside_one_of_the_login(self):
        both = "https://ada:{wiki}@h.test/?token={wiki}&sig={wiki}"

        assert with_password(both, HELD).count("hu%40sh%2F1") == 3

    @pytest.mark.parametrize(
        "address",
        [
            "https://h.test/?q={wiki}",
            "https://h.test/?token=a{wiki}",
            "https://h.test/?token=plain",
            "s3://b/x?token={wiki}",
        ],
    )
    def test_is_put_in_nowhere_else_and_what_worked_works(self, address):
        assert with_password(address, HELD) == address
        check_no_password(address)

    def test_that_is_not_there_is_told(self):
        with pytest.raises(UserError, match="no password 'other'"):
            with_password("https://h.test/?token={other}", HELD)

    def test_goes_only_where_the_settings_say(self):
        settings = SourceSettings(stores=("https://wiki.test",))

        check_open("https://wiki.test/feed?token={wiki}", settings)
        check_open("https://evil.test/?q={wiki}", settings)
        with pytest.raises(Forbidden):
            check_open("https://evil.test/?token={wiki}", settings)

    def test_is_told_to_the_site_and_kept_nowhere(self, office_of):
        with running(Site()) as site:
            site["/page?token=hu-sh"] = PAGE.format("First", "")
            address = site.url + "/page?token={wiki}"
            office = office_of(
                sources={"private_hosts": ["127.0.0.1"], "passwords": {"wiki": "hu-sh"}}
            )

            told = office.add(address=address)

            assert (told.state, told.source.counts.new) == (SyncState.IDLE, 1), told.reason
            assert told.source.address == address
            (document,) = office.documents().values()
            assert document.url == site.url + "/page"
            kept = office.settings.data_dir.glob("groundnote.db*")
            assert not any(b"hu-sh" in path.read_bytes() for path in kept)
            assert b"First" in syncs_of(office.app).original(document)
