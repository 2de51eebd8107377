"""What a reader sees of an answer's evidence: verdicts, warnings, passages."""

import re
import shutil
import threading
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect
from werkzeug.serving import make_server

from rag.documents.files import IncomingFile
from rag.records import Verdict
from rag.seams.judging import Opinion
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.openai_server import OpenAIServer, reply

pytestmark = pytest.mark.slow
NARROW = {"viewport": {"width": 390, "height": 844}}
MANUAL = b"""# Aero 5 manual

## Weight and battery

The Aero 5 weighs 120 g without its cable. Its case is made of grey aluminium. The battery lasts
30 hours at medium volume.
"""
LIGHT = "The case of the Aero 5 is grey and light [1]."
QUESTION = "How heavy is the Aero 5 and how long does it last?"


class HeldJudge:
    """Says that all is contradicted, as soon as it may."""

    name = "a judge"

    def __init__(self):
        self.may_speak = threading.Event()

    def judge(self, statements):
        self.may_speak.wait(10)
        return [Opinion(Verdict.CONTRADICTED, "It says 120 g.") for _ in statements]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The application with a manual, a model that says what a test wants, and a judge of ours."""
    data_dir, judge = tmp_path_factory.mktemp("groundnote"), HeldJudge()
    with OpenAIServer() as model, pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag.wiring.answering.open_judge", lambda settings: judge)
        llm = {"base_url": model.url, "model": "fake", "max_retries": 0, "tools": False}
        settings = Settings(data_dir=data_dir, llm=llm, follow_up={"use_model": False})
        application = application_of(settings)
        list(application.ingestion.ingest([IncomingFile.from_bytes("aero.md", MANUAL)]))
        application.start()
        app = app_of(application)
        server = make_server("127.0.0.1", 0, app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        yield SimpleNamespace(url=url, application=application, app=app, model=model, judge=judge)
        judge.may_speak.set()
        server.shutdown()
        thread.join()
        application.stop()
    shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def ask(live):
    """Ask on a page, and let the model say something; it waits until the answer stands."""
    live.judge.may_speak.clear()

    def ask(page, said):
        live.model.behaviours[:] = [reply(said)]
        page.locator("#question").fill(QUESTION)
        page.keyboard.press("Enter")
        expect(page.locator(".answer").last).to_have_attribute("data-status", "complete")

    yield ask
    live.judge.may_speak.set()


class TestTheJudgesWord:
    def test_comes_into_the_answer_while_it_is_read(self, page, live, ask):
        ask(page, f"The Aero 5 weighs 120 g without its cable [1]. {LIGHT}")
        chips = page.locator(".answer .prose a.cite")
        expect(chips).to_have_count(2)
        expect(chips.nth(1)).to_have_attribute("class", "cite")
        expect(page.locator(".answer .warning")).to_have_count(0)
        chips.nth(1).focus()

        live.judge.may_speak.set()

        expect(page.locator(".answer .warning")).to_have_text(
            re.compile("Warning: a judge says: It says 120 g.")
        )
        expect(chips.nth(1)).to_have_class(re.compile("is-warned"))
        expect(chips.nth(1)).to_be_focused()
        expect(page.locator("#status")).to_have_text(re.compile("Warning: 1 statement does not"))

    def test_leaves_an_open_passage_open(self, page, live, ask):
        ask(page, LIGHT)
        chip = page.locator(".answer .prose a.cite")
        chip.click()
        expect(page.locator("#panel .document-text")).to_be_visible()
        colour = chip.evaluate("each => getComputedStyle(each).color")

        live.judge.may_speak.set()

        expect(chip).to_have_class(re.compile("is-warned"))
        expect(chip).to_have_attribute("aria-expanded", "true")
        expect(page.locator("#panel .document-text")).to_be_visible()
        assert chip.evaluate("each => getComputedStyle(each).color") != colour
        warned = chip.evaluate("each => getComputedStyle(each).color")
        page.locator("#panel-close").click()
        assert chip.evaluate("each => getComputedStyle(each).color") == warned
