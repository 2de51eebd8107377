"""The whole application behind a server on loopback, and the system's Chromium in front of it."""

import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag.chat import answers
from rag.chat.card import CardWriter
from rag.chat.draft import through_gate
from rag.documents.files import IncomingFile
from rag.runtime.budget import on_hang_up
from rag.seams import ModelDelta
from rag.settings import Settings
from tests.applications import app_of, application_of, served
from tests.waiting import LONG

# The shell has no window to draw: a page costs it half of what it costs the browser.
BROWSERS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
CHROMIUM = next((path for path in BROWSERS if Path(path).exists()), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--in-process-gpu",
    "--disable-features=SpareRendererForSitePerProcess,Translate,OptimizationHints,MediaRouter",
]
LIBRARY = Path(__file__).parents[2] / "data" / "library"
DOCUMENTS = (
    "networking/aero-5-manual.md",
    "networking/aero-5-pro-manual.md",
    "audio/cantoro-speakers.md",
    "company/faq.html",
)
EMPTY_PAGE = "/api/v1/health"  # of a server: what it stored can be forgotten there
PATIENCE_MS = 60_000  # against waiting for ever: what is waited for comes sooner, on any machine
WORD_SECONDS = 0.005  # a card has many words


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests."""
    if not CHROMIUM:
        pytest.skip(f"there is neither {' nor '.join(BROWSERS)} on this machine")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def scriptless(chromium):
    """Another, whose user has switched scripts off: only such a one heeds `noscript`."""
    browser = chromium.browser_type.launch(
        executable_path=CHROMIUM, args=[*ARGUMENTS, "--blink-settings=scriptEnabled=false"]
    )
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The application with a few documents of the sample library."""
    data_dir = tmp_path_factory.mktemp("groundnote")
    application = application_of(Settings(data_dir=data_dir))
    files = [IncomingFile.from_path(LIBRARY / name, name=name) for name in DOCUMENTS]
    ends = [each for each in application.ingestion.ingest(files) if each.is_final]
    assert {each.stage for each in ends} == {"finished"}
    application.load()
    application.prepare_answers()  # else the first test waits for it
    application.start()
    app = app_of(application)
    with served(app) as url:
        yield SimpleNamespace(url=url, application=application, app=app)
    application.stop()
    shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def expected_complaints():
    """Parts of the console's lines that a test provokes: browsers log every refused request."""
    return []


class Windows:
    """Contexts with a page, for one test after another: opening one costs a second."""

    def __init__(self):
        self.free = {}

    def take(self, url, browser, options):
        """A page that nobody has, on an empty context with these options."""
        for of in [key for key in self.free if key[0] != url]:
            self.free.pop(of).context.close()  # of a server that has stopped
        page = self.free.pop((url, browser, repr(options)), None)
        if not page:
            page = browser.new_context(base_url=url, **options).new_page()
            page.context.set_default_timeout(PATIENCE_MS)
        return page

    def give_back(self, page, url, browser, options):
        """Whoever has it next finds nothing of who had it before."""
        context = page.context
        for other in context.pages[1:]:
            other.close()
        page.unroute_all()
        page.goto(f"{url}{EMPTY_PAGE}")
        page.evaluate("localStorage.clear(), sessionStorage.clear()")
        context.clear_cookies()
        context.set_offline(False)
        page.emulate_media(media="null")
        page.mouse.move(0, 0)
        if "viewport" in options:
            page.set_viewport_size(options["viewport"])
        self.free[url, browser, repr(options)] = page

    def close(self):
        for page in self.free.values():
            page.context.close()


@pytest.fixture(scope="session")
def windows(chromium):
    kept = Windows()
    yield kept
    kept.close()


@pytest.fixture
def open_page(chromium, windows, live, expected_complaints, request):
    """Open pages; at the end none may have logged an error or asked another origin."""
    opened, complaints = [], []
    listeners = {
        "pageerror": lambda error: complaints.append(f"script: {error}"),
        "console": lambda line: line.type == "error" and complaints.append(line.text),
        "request": lambda request: complain_of(request, live.url, complaints),
    }

    def open_page(path="/", *, has_scripts=True, **options):
        browser = chromium if has_scripts else request.getfixturevalue("scriptless")
        page = windows.take(live.url, browser, options)
        opened.append((page, browser, options))
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(path)
        return page

    yield open_page
    for page, browser, options in opened:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        windows.give_back(page, live.url, browser, options)
    assert [c for c in complaints if not any(part in c for part in expected_complaints)] == []


def complain_of(request, origin, complaints):
    if not request.url.startswith((origin, "data:", "blob:")):
        complaints.append(f"foreign request: {request.url}")


@pytest.fixture
def page(open_page):
    return open_page(viewport={"width": 1280, "height": 800})


@pytest.fixture
def held_writer(monkeypatch):
    """A writer that stops after its first words until it is let go, and then takes its time.

    Its wait is cut by whoever hangs up, as that for a model is.
    """
    let_go = threading.Event()
    write = CardWriter.write

    def held(self, request):
        on_hang_up(let_go.set)
        words = [word for delta in write(self, request) for word in delta.text.split(" ")]
        for at, word in enumerate(words):
            if at == 3:
                let_go.wait(LONG)
            time.sleep(WORD_SECONDS)
            yield ModelDelta(text=word + " " * (at + 1 < len(words)))

    monkeypatch.setattr(CardWriter, "write", held)
    # What comes word by word, as from a model, passes the gate word by word.
    monkeypatch.setattr(answers, "composed", through_gate)
    yield let_go
    let_go.set()
