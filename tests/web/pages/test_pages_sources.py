"""Sources on pages: how they stand, and what can be done about it."""

import re
from types import SimpleNamespace

import pytest

from rag.records import DEFAULT_COLLECTION, DocumentSource, SyncState
from rag.settings import Settings
from tests.applications import app_of, application_of

pytestmark = pytest.mark.slow

PATH = f"/collections/{DEFAULT_COLLECTION}/sources"


@pytest.fixture
def world(tmp_path):
    folder = tmp_path / "manuals"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text(f"# Manual {number}\n\nThe lamp has {number} watts.")
    settings = Settings(data_dir=tmp_path / "data", sources={"folders": [str(tmp_path)]})
    made = application_of(settings)
    client = app_of(made).test_client()

    def post(path, **values):
        token = re.search(r'name="csrf_token" value="([^"]*)"', client.get(PATH).text)[1]
        answer = client.post(path, data={"csrf_token": token} | values, follow_redirects=True)
        made.jobs.run_waiting()
        return answer

    def act(name, **values):
        source = made.sources.table.sources()[0]
        return post(f"/document-sources/{source.id}{'/' + name if name else ''}", **values)

    return SimpleNamespace(
        app=made, folder=folder, post=post, act=act, page=lambda: text_of(client.get(PATH).text),
        client=client,
    )  # fmt: skip


def text_of(html: str) -> str:
    html = re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("&#39;", "'").split())


def documents(world):
    return sorted(each["name"] for each in world.client.get("/api/v1/documents").json["documents"])


def add(world, **values):
    return world.post(PATH, address=str(world.folder), every="3600", depth="3", **values)


def test_a_collection_without_one_says_so_and_its_documents_lead_there(world):
    assert "No source yet" in world.page()
    assert f'href="{PATH}"' in world.client.get("/documents").text


def test_one_is_added_and_how_it_stands_is_told(world):
    assert add(world, exclude="4.md, drafts/").status_code == 200
    told = world.page()

    assert "In step" in told
    assert "4 new" in told
    assert "every hour, next" in told
    assert "Without 4.md , drafts/" in told
    assert documents(world) == ["0.md", "1.md", "2.md", "3.md"]


@pytest.mark.parametrize(
    ("address", "told"),
    [("http://127.0.0.1/", "an address of this network"), ("gopher://x/", "is no kind of source"),
     ("/etc", "added by whoever runs the server"), ("http://169.254.169.254/", "this network"),
     ("git+ssh://git@example.com/x.git", "added by whoever runs")],
)  # fmt: skip
def test_what_may_not_be_added_is_told_and_kept_in_the_form(world, address, told):
    answer = world.post(PATH, address=address, every="86400", depth="2", include="*.pdf")

    assert answer.status_code in (400, 403)
    assert told in text_of(answer.text)
    assert f'value="{address}"' in answer.text
    assert '<option value="86400" selected>' in answer.text
    assert world.app.sources.table.sources() == []


def test_many_removals_wait_for_yes_or_no(world):
    add(world)
    for number in range(3):
        (world.folder / f"{number}.md").unlink()
    world.act("sync")
    told = world.page()
    assert "3 documents are not there any more" in told
    assert "Waits for your yes" in told
    assert len(documents(world)) == 5
    world.act("decline")
    assert "not there any more" not in world.page()
    world.act("sync")

    assert "Waits" not in world.page()
    assert len(documents(world)) == 5


def test_a_yes_removes_and_what_was_removed_can_be_had_back(world):
    add(world)
    for number in range(3):
        (world.folder / f"{number}.md").unlink()
    world.act("sync")
    world.act("confirm")
    assert documents(world) == ["3.md", "4.md"]
    assert "Have back 3 removed" in world.page()
    world.act("undo")

    assert len(documents(world)) == 5


def test_a_place_that_is_away_says_so_and_takes_nothing(world):
    add(world)
    world.folder.rename(world.folder.parent / "elsewhere")
    world.act("sync")
    told = world.page()

    assert "Cannot be seen now" in told
    assert "nothing is removed" in told
    assert len(documents(world)) == 5


def test_files_that_could_not_be_read_are_named(world):
    (world.folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    add(world)

    assert "1 file could not be read" in world.page()
    assert "broken.pdf" in world.page()


def test_it_is_changed_and_removed_with_or_without_its_documents(world):
    add(world)
    world.act("", every="", include="0.md", exclude="")
    assert "when somebody says so" in world.page()
    assert "Only 0.md" in world.page()
    world.act("leave")
    assert "No source yet" in world.page()
    kept = documents(world)
    assert kept
    add(world)
    world.act("remove")

    assert world.app.sources.table.sources() == []


def test_nothing_else_is_done(world):
    add(world)

    assert world.act("explode").status_code == 400
    assert world.post("/document-sources/none/sync").status_code == 404


def test_a_password_is_not_shown(world):
    world.app.sources.table.add(
        DocumentSource("", "https://me:secret@example.com/", "web", "x", state=SyncState.FAILED,
                       reason="It failed.")
    )  # fmt: skip

    page = world.client.get(PATH).text
    assert "secret" not in page
    assert "example.com" in page


def test_a_collection_of_somebody_else_is_not_told_of(tmp_path):
    auth = {"mode": "tokens", "tokens": {"a": "anna", "b": "ben"}, "managers": ["anna", "ben"]}
    made = application_of(Settings(data_dir=tmp_path, auth=auth))
    client = app_of(made).test_client()
    own = made.collections.create("anna", "Hers").id
    made.sources.table.add(DocumentSource("", "https://a.test/", "web", "a", own, "anna"))
    ben = {"Authorization": "Bearer b"}

    assert client.get(f"/collections/{own}/sources", headers=ben).status_code in (403, 404)
    assert b"a.test" not in client.get("/documents", headers=ben).data
