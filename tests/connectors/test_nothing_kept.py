"""No secret of a source stands in anything that is stored, told, logged or exported: a canary."""

import json
import zipfile

import pytest

from rag.connectors.kinds import hidden, opened_address, revealed, sealed
from rag.connectors.web.pages import FILE
from rag.errors import SetupError
from rag.llm.discovery import SECRET_FILE, SecretBox
from rag.records import SyncState
from tests.applications import app_of
from tests.connectors.remote.site import Site, running
from tests.connectors.test_secrets import PAGE

CANARY = "c4n4ry+of/the wiki"
SPELLED = ("c4n4ry+of/the wiki", "c4n4ry%2Bof%2Fthe%20wiki", "c4n4ry%2Bof%2Fthe+wiki", "c4n4ry")


class Guarded(Site):
    """A site that wants its token for every page, and puts it into its links."""

    def get(self, path, headers):
        bare, _, query = path.partition("?")
        if bare != "/robots.txt" and f"token={SPELLED[1]}" not in query:
            self.asked.append((path, 403))
            return 403, {}, f"no: {path}".encode()
        return super().get(bare, headers)


@pytest.fixture
def site():
    with running(Guarded()) as made:
        link = f"/docs/second?token={SPELLED[1]}"
        made["/docs/"] = PAGE.format("First", f'<a href="{link}">more</a>')
        made["/docs/second"] = PAGE.format("Second", "")
        yield made


@pytest.fixture
def office(office_of):
    private = {"private_hosts": ["127.0.0.1"], "passwords": {"wiki": CANARY}}
    return office_of(sources=private)


def where_it_stands(folder, *texts):
    """Files with a spelling of the canary, also within archives; and texts."""
    found = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                data += b"".join(archive.read(name) for name in archive.namelist())
        found += [path.name for spelled in SPELLED if spelled.encode() in data]
    return found + [text[:200] for text in texts if any(each in text for each in SPELLED)]


def named(site, path="/docs/"):
    return f"{site.url}{path}?token={{wiki}}"


def test_of_a_look_again_and_again(office, site, caplog):
    first = office.add(address=named(site))
    again = office.sync()
    del site.pages["/docs/second"]
    office.sync()
    site.pages.clear()
    away = office.sync()
    client = app_of(office.app).test_client()
    told = [client.get(path).text for path in ("/api/v1/sources", "/api/v1/documents", "/metrics")]
    page = client.get("/collections").text

    assert first.source.counts.new == 2
    assert again.source.counts.unchanged == 2
    assert away.state is SyncState.AWAY
    assert where_it_stands(office.settings.data_dir, *told, page, away.reason, caplog.text) == []


def test_what_was_kept_in_clear_is_rewritten_and_nothing_is_read_again(office, site):
    office.add(address=named(site))
    aside = office.settings.data_dir / "sources" / office.source.id / FILE
    secrets = ((SPELLED[1], "{wiki}"),)
    clear = json.loads(revealed(aside.read_text(), secrets))
    aside.write_text(json.dumps(clear))  # as it was written before
    before, asked = office.ids(), len(site.asked)
    office.embedded.clear()

    told = office.sync()

    assert (told.source.counts.unchanged, told.source.counts.removed) == (2, 0)
    assert office.ids() == before
    assert not office.embedded
    assert [status for _path, status in site.asked[asked:]].count(304) == 2
    assert where_it_stands(office.settings.data_dir) == []


def test_what_was_written_out_is_sealed(office, site):
    written = f"{site.url}/docs/?token={SPELLED[1]}"
    told = office.add(address=written)

    assert told.source.counts.new == 2
    assert "{sealed." in told.source.address
    assert where_it_stands(office.settings.data_dir) == []


def test_rows_of_earlier_days_are_sealed_before_the_first_look(office, site):
    office.add(address=named(site))
    before = office.ids()
    office.book.table.change(office.source.id, address=f"{site.url}/docs/?token={SPELLED[1]}")
    office.embedded.clear()

    told = office.sync()

    assert (told.source.counts.unchanged, told.source.counts.new) == (2, 0)
    assert office.ids() == before
    assert not office.embedded
    assert "{sealed." in told.source.address


KEYS = "token access_token sig X-Amz-Signature api_key auth_code key client_secret password"
IN_A_QUERY = [
    f"{place}?lang=de&{key}=c4n4ry#x"
    for key in KEYS.split()
    for place in ("https://h.test/x", "git+https://h.test/x", "s3://b/x", "webdavs://h.test/x")
]


@pytest.mark.parametrize(
    "address",
    [
        *IN_A_QUERY,
        "https://ada:c4n4ry@h.test/x", "https://c4n4ry@h.test/x.git", "https://h.test/?token=c4n4ry",
        "https://ada:c4n4ry@h.test/?sig=c4n4ry&lang=de&access_token=c4n4ry#x",
        "confluence://me@h.test:c4n4ry@site.test/KEY", "smb://WORK;ada:c4n4ry@h.test/s",
        "github://owner:name@main/?token=c4n4ry", "s3://b/x?key=c4n4ry",
    ],
)  # fmt: skip
def test_sealed_is_opened_as_it_was(address, tmp_path):
    box = SecretBox(tmp_path)
    kept = sealed(address, box)
    opened = opened_address(kept, {}, box)

    assert "c4n4ry" not in kept
    assert "c4n4ry" not in repr(opened)
    assert opened.address == address
    assert sealed(kept, box) == kept
    assert "c4n4ry" not in hidden(f"{address} failed", opened.secrets)


def test_nobody_else_opens_it(tmp_path):
    kept = sealed("https://h.test/?token=c4n4ry", SecretBox(tmp_path))
    (tmp_path / SECRET_FILE).write_text("another")

    with pytest.raises(SetupError, match="another secret"):
        opened_address(kept, {}, SecretBox(tmp_path))
