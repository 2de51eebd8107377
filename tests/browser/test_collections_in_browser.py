"""Choosing what a conversation asks, and tending collections, in Chromium."""

import threading
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from rag.documents.files import IncomingFile
from rag.ingestion.pipeline import Ingestion
from tests.waiting import LONG

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def handbooks(live):
    """A second collection, with a document about leave."""
    made = live.application.collections.create("", "Handbooks")
    data = b"# Leave\n\nEverybody has thirty days of leave a year."
    file = IncomingFile("leave.md", lambda _most: data, collection_id=made.id)
    ends = [each for each in live.application.ingestion.ingest([file]) if each.is_final]
    assert [each.stage for each in ends] == ["finished"]
    return made.id


def asks(page):
    return page.locator("[data-choice] summary")


def sources_of(page):
    session = urlsplit(page.url).path.rsplit("/", 1)[1]
    answer = page.request.get(f"/api/v1/sessions/{session}/sources").json()
    return {each["document"] for each in answer["sources"]}


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_conversation_asks_what_is_ticked(open_page, handbooks, scripts):
    page = open_page("/", has_scripts=scripts)
    expect(asks(page)).to_have_text("Asks all 2 collections")
    asks(page).click()
    page.get_by_role("checkbox", name="Library").uncheck()
    if scripts:
        expect(asks(page)).to_have_text("Asks Handbooks")
    page.get_by_label("Your question").fill("How many days of leave are there?")
    page.get_by_role("button", name="Ask", exact=True).click()

    expect(page.get_by_text("thirty days of leave").first).to_be_visible()
    expect(asks(page)).to_have_text("Asks Handbooks")
    assert sources_of(page) == {"leave.md"}

    if scripts:
        page.reload()
    asks(page).click()
    page.get_by_role("checkbox", name="Library").check()
    page.get_by_label("Your question").fill("How much does the Aero 5 weigh?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#m3")).to_contain_text("Aero 5")
    assert "networking/aero-5-manual.md" in sources_of(page)


def test_a_starter_asks_what_is_ticked_without_scripts(open_page, handbooks):
    page = open_page("/", has_scripts=False)
    asks(page).click()
    page.get_by_role("checkbox", name="Library").uncheck()
    page.locator(".starters button").first.click()

    expect(asks(page)).to_have_text("Asks Handbooks")
    assert sources_of(page) <= {"leave.md"}


def test_the_choice_is_made_with_the_keyboard(open_page, handbooks):
    page = open_page("/")
    page.get_by_label("Your question").focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")

    expect(asks(page)).to_have_text("Asks Handbooks")


def test_what_is_ticked_and_chosen_stays_so_while_files_come_in(open_page, handbooks, monkeypatch):
    ingest, let_go = Ingestion.ingest, threading.Event()

    def slowly(self, files):
        let_go.wait(LONG)
        yield from ingest(self, files)

    page = open_page("/documents")
    page.get_by_role("checkbox", name="Tick leave.md").check()
    page.get_by_label("To which collection").select_option("Handbooks")
    page.locator("h1").click()  # nobody is at work in the list
    monkeypatch.setattr(Ingestion, "ingest", slowly)
    note = {"name": "late.md", "mimeType": "text/markdown", "buffer": b"# Late\n\nIt came in."}
    page.locator("#files").set_input_files([note])
    expect(page.locator(".jobs")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Tick leave.md")).to_be_checked()

    let_go.set()
    expect(page.locator(".jobs")).to_have_count(0)
    expect(page.get_by_role("checkbox", name="Tick late.md")).not_to_be_checked()
    expect(page.get_by_role("checkbox", name="Tick leave.md")).to_be_checked()
    assert page.locator("[name=to] option:checked").text_content() == "Handbooks"
    page.request.delete(f"/api/v1/documents/{document_id(page, 'late.md')}")


def document_id(page, name):
    documents = page.request.get("/api/v1/documents").json()["documents"]
    return next(each["id"] for each in documents if each["name"] == name)


def test_many_documents_are_moved_and_deleted_after_asking(open_page, handbooks):
    page = open_page("/documents")
    page.get_by_role("checkbox", name="Tick all on this page").check()
    assert page.locator("[name=document]:checked").count() == 5
    page.get_by_role("button", name="Delete the ticked").click()
    expect(page.get_by_role("heading", name="Delete these 5 documents?")).to_be_visible()
    page.get_by_role("link", name="Keep them").click()

    page.get_by_role("checkbox", name="Tick leave.md").check()
    page.get_by_label("To which collection").select_option("Library")
    page.get_by_role("button", name="move them").click()
    expect(page.get_by_role("link", name="Library 5")).to_be_visible()

    page.get_by_role("link", name="newest first").click()
    expect(page.locator(".is-documents b").first).to_have_text("Leave")
    page.get_by_role("checkbox", name="Tick leave.md").check()
    page.get_by_role("button", name="Delete the ticked").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("heading", name="4 in the library")).to_be_visible()
