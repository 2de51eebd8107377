"""The library's page in a real browser."""

import re
import threading

import pytest
from playwright.sync_api import expect

from rag.ingestion.pipeline import Ingestion
from tests.waiting import LONG, until

pytestmark = pytest.mark.slow


def note(name, text="# {name}\n\nThe {name} hums at 50 hertz.\n"):
    return {
        "name": f"{name}.md",
        "mimeType": "text/markdown",
        "buffer": text.format(name=name).encode(),
    }


def bring(page, event, name, text="# A note\n\nIt fell down."):
    """Drop or paste a file; says whether the browser is kept from opening it by itself."""
    return page.evaluate(
        """([event, name, text]) => {
            const files = new DataTransfer();
            files.items.add(new File([text], name));
            const options = {bubbles: true, cancelable: true};
            const brought = event === "paste"
                ? new ClipboardEvent(event, {...options, clipboardData: files})
                : new DragEvent(event, {...options, dataTransfer: files});
            document.querySelector("main").dispatchEvent(brought);
            return brought.defaultPrevented;
        }""",
        [event, name, text],
    )


@pytest.fixture
def library(page):
    page.goto("/documents")
    return page


class TestUpload:
    def test_shows_progress_and_then_the_document(self, library, monkeypatch):
        ingest, let_go = Ingestion.ingest, threading.Event()

        def slowly(self, files):
            let_go.wait(LONG)
            yield from ingest(self, files)

        monkeypatch.setattr(Ingestion, "ingest", slowly)

        library.locator("#files").set_input_files([note("Transformer")])

        expect(library.locator(".jobs progress")).to_be_visible()
        expect(library.locator(".job-name")).to_have_text("Transformer.md")
        let_go.set()
        expect(library.locator(".list")).to_contain_text("Transformer.md")
        expect(library.locator(".jobs")).to_have_count(0)
        expect(library.locator("#status")).to_have_text("Transformer.md added to the library.")

    def test_takes_dropped_files(self, library):
        bring(library, "drop", "dropped.md")

        expect(library.locator(".list")).to_contain_text("dropped.md")

    def test_takes_pasted_files(self, library):
        bring(library, "paste", "pasted.md")

        expect(library.locator(".list")).to_contain_text("pasted.md")

    def test_says_why_a_file_was_not_added(self, library):
        broken = {
            "name": "broken.pdf",
            "mimeType": "application/pdf",
            "buffer": b"%PDF-1.7 nothing",
        }

        library.locator("#files").set_input_files([broken])

        expect(library.locator(".problems")).to_contain_text("broken.pdf")
        library.get_by_role("button", name="Dismiss").click()
        expect(library.locator(".problems")).to_have_count(0)
        library.reload()
        expect(library.locator(".problems")).to_have_count(0)
        library.locator("#files").set_input_files([broken])
        expect(library.locator(".problems")).to_contain_text("broken.pdf")

    def test_without_scripts_works_as_a_form(self, open_page):
        page = open_page("/documents", has_scripts=False)

        page.locator("#files").set_input_files([note("Rectifier")])
        page.get_by_role("button", name="Add", exact=True).click()

        expect(page.locator("#library")).to_contain_text("Rectifier.md")
        until(
            lambda: (
                page.goto("/documents") and page.locator(".list", has_text="Rectifier.md").count()
            )
        )


class TestFilesBesideTheLibrarysPage:
    def test_are_taken_without_leaving_the_conversation(self, page):
        page.locator("#question").fill("A question that is not yet asked")

        is_kept = bring(page, "dragover", "beside.md")
        expect(page.locator(".veil")).to_be_visible()
        bring(page, "drop", "beside.md")

        expect(page.locator("#notice")).to_contain_text("beside.md added to the library.")
        expect(page.locator("#status")).to_contain_text("beside.md added")
        expect(page.locator(".veil")).not_to_be_visible()
        expect(page.locator("#question")).to_have_value("A question that is not yet asked")
        expect(page.locator("#side")).to_contain_text("beside.md")
        assert is_kept
        page.locator("#notice").get_by_role("button", name="Close").press("Escape")
        expect(page.locator("#notice")).not_to_be_visible()
        expect(page.locator("#question")).to_be_focused()

    def test_are_refused_with_the_reason(self, page, expected_complaints):
        expected_complaints.append("status of 4")

        bring(page, "paste", "letter.docx")

        expect(page.locator("#notice")).to_contain_text("Nothing was added.")
        expect(page.locator("#notice li")).to_contain_text("letter.docx")


class TestDeletion:
    def test_marks_the_evidence_of_old_answers(self, page):
        page.goto("/documents")
        page.locator("#files").set_input_files([note("Zorble")])
        expect(page.locator(".list")).to_contain_text("Zorble.md")
        page.goto("/")
        page.locator("#question").fill("At how many hertz does the Zorble hum?")
        page.keyboard.press("Enter")
        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
        conversation = page.url

        page.goto("/documents")
        page.get_by_role("link", name="Delete Zorble.md").click()
        page.get_by_role("button", name="Delete it").click()
        expect(page.locator(".list")).not_to_contain_text("Zorble.md")
        page.goto(conversation)
        page.locator(".answer .answer-card a.cite").first.click()

        expect(page.locator("#panel .badge")).to_have_text("not there any more")
        expect(page.locator("#panel mark").first).to_have_text(re.compile("50 hertz"))
