"""A source of any kind, as a package may add it: what it lists and says is what a sync goes by."""

import hashlib
import time
from types import SimpleNamespace

import pytest

from rag.connectors import kinds
from rag.errors import SourceAway, Unreadable
from rag.records import SyncState
from rag.seams import ListedFile
from tests.applications import app_of

TEXTS = {f"{n}.md": f"# Number {n}\n\nIt weighs {n} kg.\n" for n in range(4)}


class Shelf:
    """What a test says is there; each file is read by one thread at a time."""

    def __init__(self):
        self.texts = dict(TEXTS)
        self.urls = {}
        self.has_marks = True
        self.ends_after = self.reads_before_it_goes = 1_000
        self.read_names, self.reading, self.options = [], [], None

    def __call__(self, address, options):
        self.options = options
        return self

    def listed(self):
        for number, (name, text) in enumerate(self.texts.items()):
            if number == self.ends_after:
                raise SourceAway("The shelf fell down.")
            mark = hashlib.sha256(text.encode()).hexdigest() if self.has_marks else ""
            yield ListedFile(name, mark, None, self.urls.get(name, ""))

    def read(self, file):
        self.reading.append(file)
        assert len(self.reading) == 1
        time.sleep(0.005)  # another thread would come in between
        self.read_names.append(file.name)
        if len(self.read_names) > self.reads_before_it_goes:
            self.reading.clear()
            raise SourceAway("The shelf fell down.")
        text = self.texts[file.name]
        self.reading.clear()
        if not text:
            raise Unreadable(file.name, "it is empty.")
        return text.encode()

    def close(self):
        pass


@pytest.fixture
def shelf(monkeypatch):
    made = Shelf()
    point = SimpleNamespace(name="shelf", load=lambda: made)
    monkeypatch.setattr(kinds, "entry_points", lambda group, name="": [point])
    return made


@pytest.fixture
def kept(office, shelf):
    office.add(address="shelf://one")
    return office


def test_is_kept_in_step(kept, shelf):
    del shelf.texts["0.md"]
    shelf.texts["4.md"] = "# Number 4\n\nIt weighs 4 kg.\n"
    shelf.texts["other/1.md"] = shelf.texts.pop("1.md")
    before = kept.ids()

    told = kept.sync()

    assert kept.ids()["other/1.md"] == before["1.md"]
    assert set(kept.texts()) == {"other/1.md", "2.md", "3.md", "4.md"}
    counts = told.source.counts
    assert (counts.new, counts.moved, counts.removed, counts.unchanged) == (1, 1, 1, 2)


def test_without_marks_is_read_each_time_and_embedded_once(kept, shelf):
    shelf.has_marks = False
    kept.sync()
    shelf.read_names.clear()
    embedded = len(kept.embedded)

    told = kept.sync()

    assert sorted(shelf.read_names) == sorted(TEXTS)
    assert len(kept.embedded) == embedded
    assert (told.source.counts.changed, told.source.counts.unchanged) == (0, 4)


def test_that_goes_while_it_is_listed_removes_and_moves_nothing(kept, shelf):
    shelf.texts = {"new/0.md": shelf.texts["0.md"], "9.md": "# Nine\n\nIt is new.\n"} | shelf.texts
    shelf.ends_after = 2

    told = kept.sync()

    assert (told.state, told.reason) == (SyncState.AWAY, "The shelf fell down.")
    assert set(kept.texts()) == {*TEXTS, "9.md"}


def test_that_goes_while_it_is_read_blames_no_file(office, shelf):
    shelf.reads_before_it_goes = 2

    told = office.add(address="shelf://one")
    assert (told.state, told.source.counts.failed) == (SyncState.AWAY, 0)

    shelf.reads_before_it_goes = 1_000
    assert office.sync().state is SyncState.IDLE
    assert set(office.texts()) == set(TEXTS)


def test_has_a_folder_of_its_own_that_goes_with_it(kept, shelf):
    aside = shelf.options.aside
    aside.mkdir(parents=True)

    kept.book.remove(kept.source.id)
    kept.app.jobs.run_waiting()

    assert not aside.exists()


class TestWhereAFileIsOpened:
    def test_is_told_by_api_and_page(self, office, shelf):
        shelf.urls = {"0.md": "https://example.com/0?a=1&b=2"}
        office.add(address="shelf://one")
        client, document_id = app_of(office.app).test_client(), office.ids()["0.md"]

        told = client.get(f"/api/v1/documents/{document_id}").get_json()
        page = client.get(f"/documents/{document_id}").get_data(as_text=True)

        assert told["url"] == "https://example.com/0?a=1&b=2"
        assert 'href="https://example.com/0?a=1&amp;b=2"' in page
        assert "Open at its source" in page

    def test_follows_what_the_source_says(self, kept, shelf):
        shelf.urls = {"0.md": "https://example.com/0"}

        kept.sync()

        assert kept.documents()["0.md"].url == "https://example.com/0"

    @pytest.mark.parametrize(
        "url", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x"]
    )
    def test_is_a_place_in_the_web_or_none(self, office, shelf, url):
        shelf.urls = {"0.md": url}
        office.add(address="shelf://one")

        assert office.documents()["0.md"].url == ""

    def test_is_told_beside_what_is_cited(self, office, shelf):
        shelf.urls = {"0.md": "https://example.com/0"}
        office.add(address="shelf://one")
        session = office.app.store.create("local")
        list(office.app.assistant.ask(session, "What does Number 0 weigh?"))
        number = next(s.number for s in session.sources() if s.document_name == "0.md")

        page = app_of(office.app).test_client().get(f"/sessions/{session.id}/sources/{number}")

        assert 'href="https://example.com/0"' in page.get_data(as_text=True)


def test_what_a_kind_needs_and_lacks_is_told(office, shelf, monkeypatch):
    def lacking(address, options):
        raise ImportError("No module named 'shelves'")

    monkeypatch.setattr(kinds, "_opener", lambda kind: lacking)

    with pytest.raises(Exception, match="needs a package that is not installed"):
        office.add(address="shelf://one")
