"""What a reader sees of an answer's evidence: verdicts, warnings, passages."""

import io
import re
import shutil
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect
from reportlab.pdfgen.canvas import Canvas

from rag.citations.markers import find_markers
from rag.documents.files import IncomingFile
from rag.records import (
    EVERYTHING,
    Answer,
    Citation,
    Judging,
    MessageStatus,
    Unsourced,
    Verdict,
)
from rag.seams.models import JudgeVerdict
from rag.settings import Settings
from tests.applications import app_of, application_of, served
from tests.openai_server import OpenAIServer, reply
from tests.waiting import LONG

pytestmark = pytest.mark.slow
NARROW = {"viewport": {"width": 390, "height": 844}}
MANUAL = b"""# Aero 5 manual

## Weight and battery

The Aero 5 weighs 120 g without its cable. Its case is made of grey aluminium. The battery lasts
30 hours at medium volume.
"""
SALES = "Product,Region,Revenue\n" + "".join(f"Lamp {n},North,{100 + n}\n" for n in range(1, 120))
SALES = SALES.encode()
LIGHT = "The case of the Aero 5 is grey and light [1]."
AXE = Path(__file__).parents[1] / "web/clients/node_modules/axe-core/axe.min.js"
VIOLATIONS = "rules => axe.run({...rules, resultTypes: ['violations']}).then(a => a.violations)"
# Colours alone differ there from the light look, in which all the rules are tried.
OF_COLOURS = {"runOnly": ["color-contrast"]}
LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "forced colours": {"forced_colors": "active"},
    "phone": NARROW,
}
CHECKED = (
    "The Aero 5 weighs 410 g without its cable [1]. The battery lasts 30 hours at medium volume "
    "[1]. It can be painted [1]. It looks good [1]. It was made by hand."
)
PRINTED = (
    "The pump weighs 490 g without its cable [1]. Clean the filter every four weeks with cold "
    "water only [1]. It can fly [1]. It looks good [1]."
)
VERDICTS = (Verdict.CONTRADICTED, Verdict.SUPPORTED, Verdict.OFF_SUBJECT, Verdict.OPEN)
QUESTION = "How heavy is the Aero 5 and how long does it last?"


@cache
def handbook():
    """A PDF of three pages; the second says how to clean a pump, and has its weight."""
    pages = (
        ["Nimbus handbook", "The Nimbus is a small pump for ponds."],
        [
            "Care",
            "",
            "Clean the fil-",
            "ter of the Nimbus every four weeks with",
            "cold water only.",
            "",
            "The pump weighs 940 g without its cable.",
        ],
        ["The guarantee ends two years after the day of purchase."],
    )
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setTitle("Nimbus handbook")
    for lines in pages:
        for at, line in enumerate(lines):
            canvas.drawString(72, 760 - 13 * at, line)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


class HeldJudge:
    """Says that all is contradicted, as soon as it may."""

    name = "a judge"

    def __init__(self):
        self.may_speak = threading.Event()

    def judge(self, statements):
        self.may_speak.wait(LONG)
        return [JudgeVerdict(Verdict.CONTRADICTED, "It says 120 g.") for _ in statements]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The application with a manual, a model that says what a test wants, and a judge of ours."""
    data_dir, judge = tmp_path_factory.mktemp("groundnote"), HeldJudge()
    with OpenAIServer() as model, pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag.wiring.answers.open_judge", lambda settings: judge)
        llm = {"base_url": model.url, "model": "fake", "max_retries": 0, "tools": False}
        settings = Settings(data_dir=data_dir, llm=llm, follow_up={"use_model": False})
        application = application_of(settings)
        files = {"aero.md": MANUAL, "nimbus.pdf": handbook(), "sales.csv": SALES}
        list(application.ingestion.ingest(IncomingFile.from_bytes(*each) for each in files.items()))
        application.start()
        app = app_of(application)
        with served(app) as url:
            known = {"application": application, "app": app, "model": model, "judge": judge}
            yield SimpleNamespace(url=url, **known)
            judge.may_speak.set()
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

    def test_comes_to_a_page_that_was_opened_meanwhile(self, page, live, checked):
        handle = live.application.store.open(checked.rpartition("/")[2], owner="local")
        message = handle.message(1)
        judged = message.answer
        pending = replace(judged, judging=Judging.PENDING, citations=())
        handle.judge(replace(message, answer=pending))
        page.goto(checked)
        expect(page.locator(".answer")).to_contain_text("The statements are being checked.")

        handle.judge(replace(message, answer=judged))

        expect(page.locator(".answer .warning")).to_have_count(2)
        expect(page.locator(".answer")).not_to_contain_text("being checked")
        expect(page.locator("#status")).to_have_text(re.compile("Warning: 2 statements do not"))

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


@pytest.fixture
def checked(live):
    """The address of a conversation whose answer has every verdict."""
    free = CHECKED.index("It was made")
    return conversation(live, "aluminium", CHECKED, Unsourced(free, len(CHECKED)))


@pytest.fixture
def printed(live):
    """The same, of a printed source."""
    return conversation(live, "Nimbus filter weeks", PRINTED)


def conversation(live, found_by, text, *unsourced):
    """One whose answer cites what some words find; its markers have one verdict after the other."""
    handle = live.application.store.create("local", title="Checked")
    handle.register(live.application.retriever.by_words(found_by, EVERYTHING, limit=1))
    turn = handle.begin(QUESTION)
    markers = zip(find_markers(text), VERDICTS, strict=False)
    citations = tuple(Citation(1, each.start, each.end, verdict) for each, verdict in markers)
    answer = Answer(text, citations, unsourced, model="fake")
    done = replace(turn.answer, content=text, status=MessageStatus.COMPLETE, answer=answer)
    handle.finish(done)
    return f"/sessions/{handle.id}"


def chips(page):
    return page.locator(".answer .prose a.cite")


def style(locator, name, pseudo=None):
    return locator.evaluate(
        "(each, [name, pseudo]) => getComputedStyle(each, pseudo)[name]", [name, pseudo]
    )


class TestNumbers:
    @pytest.mark.parametrize("look", LOOKS)
    def test_of_each_verdict_are_told_apart_by_their_shape(self, open_page, checked, look):
        page = open_page(checked, **LOOKS[look])

        shapes = [
            (style(each, "borderTopStyle"), style(each, "content", "::after").partition(" ")[0])
            for each in chips(page).all()
        ]

        warned, supported, silent, free = shapes
        assert warned == silent == ("dashed", '"!"')
        assert supported == ("solid", '"✓"')
        assert free[1] == "none"

    def test_have_one_source_which_is_named_as_one(self, page, checked):
        page.goto(checked)

        expect(page.get_by_role("link", name="The source", exact=True)).to_be_visible()
        expect(page.get_by_text("1 sources")).to_have_count(0)

    def test_keep_their_colour_while_they_are_open(self, page, checked):
        page.goto(checked)
        for chip in chips(page).all()[:2]:
            before = style(chip, "color"), style(chip, "backgroundColor")

            chip.click()

            expect(chip).to_have_attribute("aria-expanded", "true")
            assert (style(chip, "color"), style(chip, "backgroundColor")) == before
            assert style(chip, "outlineStyle") == "solid"
            page.locator("#panel-close").click()


class TestWarnings:
    @pytest.mark.parametrize("look", LOOKS)
    def test_stand_in_words_behind_their_statements(self, open_page, checked, look):
        page = open_page(checked, **LOOKS[look])

        expect(page.locator(".prose")).to_contain_text(
            re.compile(r"cable.\[1\]\. Warning: The source says something else\. The battery")
        )
        expect(page.locator(".prose .warning")).to_have_count(2)
        expect(page.locator(".prose .no-source")).to_have_text("no source")
        expect(page.locator(".flags, .flag")).to_have_count(0)

    def test_begin_on_the_line_of_their_sign_however_narrow_the_page_is(self, page, checked):
        page.goto(checked)
        for width in range(320, 440, 8):
            page.set_viewport_size({"width": width, "height": 844})

            apart = page.locator(".prose .warning").evaluate_all(
                """each => each.filter((one) => {
                  const words = document.createRange();
                  words.setStart(one.lastChild, 0);
                  words.setEnd(one.lastChild, 1);
                  const top = words.getClientRects()[0].top;
                  return Math.abs(one.getClientRects()[0].top - top) > 8;
                }).length"""
            )

            assert apart == 0, width

    def test_are_announced_when_an_answer_is_ready(self, page, ask):
        ask(page, "The Aero 5 weighs 410 g without its cable [1].")

        expect(page.locator("#status")).to_have_text(
            re.compile("ready, with 1 source. Warning: 1 statement does not agree")
        )


class TestThePassage:
    @pytest.mark.parametrize("look", LOOKS)
    def test_is_headed_by_both_figures_of_a_contradiction(self, open_page, checked, look):
        page = open_page(checked, **LOOKS[look])

        chips(page).first.click()

        title = page.locator("#panel-title")
        expect(title).to_have_text(
            "Contradicted Your answer says 410 g. This source says 120 g.", use_inner_text=False
        )
        expect(title.locator("strong")).to_have_text(["410 g", "120 g"])
        expect(page.locator("#panel mark")).to_have_text(re.compile("^The Aero 5 weighs 120 g"))
        expect(page.locator("#panel mark strong")).to_have_text("120 g")
        expect(page.locator("#panel-place")).to_contain_text("[1] Aero 5 manual")
        assert style(page.locator("#panel mark"), "borderBottomStyle") == "dashed"

    def test_is_headed_by_a_statement_that_it_supports(self, page, checked):
        page.goto(checked)

        chips(page).nth(1).click()

        expect(page.locator("#panel-title")).to_contain_text("Supported")
        expect(page.locator("#panel mark strong")).to_have_text("30 hours")
        assert style(page.locator("#panel mark"), "borderBottomStyle") == "solid"

    def test_that_is_silent_says_so_and_marks_nothing(self, page, checked):
        page.goto(checked)

        chips(page).nth(2).click()

        expect(page.locator("#panel-title")).to_contain_text("No such statement here")
        expect(page.locator("#panel mark")).to_have_count(0)
        expect(page.locator("#panel #passage")).to_be_in_viewport()

    @pytest.mark.parametrize("look", LOOKS)
    def test_is_opened_and_closed_with_the_keyboard_alone(self, open_page, checked, look):
        page = open_page(checked, **LOOKS[look])
        chip = chips(page).first

        chip.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#panel-title")).to_be_focused()
        page.keyboard.press("Escape")

        expect(page.locator("#panel")).not_to_be_visible()
        expect(chip).to_be_focused()

    def test_of_what_was_not_checked_says_nothing_of_it(self, page, checked):
        page.goto(checked)

        chips(page).nth(3).click()

        expect(page.locator("#panel-title")).to_have_text(re.compile(r"^\s*It looks good\s*$"))

    def test_is_headed_by_its_statement_without_scripts(self, open_page, checked):
        page = open_page(checked, has_scripts=False)

        chips(page).first.click()

        expect(page.locator(".stated")).to_contain_text("This source says 120 g.")
        expect(page.locator("h1")).to_contain_text("[1] Aero 5 manual")


class TestAGlance:
    @pytest.mark.parametrize("look", LOOKS)
    def test_says_quote_document_and_verdict_in_every_look(self, open_page, checked, look):
        page = open_page(checked, **LOOKS[look])

        chips(page).first.focus()

        glance = page.get_by_role("tooltip")
        expect(glance).to_contain_text("Your answer says 410 g. This source says 120 g.")
        expect(glance).to_contain_text("[1] Aero 5 manual")
        expect(glance).to_be_in_viewport(ratio=1)
        assert style(glance, "borderTopStyle") != "none"

    def test_is_shown_beside_a_number_while_the_mouse_rests_there(self, page, checked):
        page.goto(checked)

        chips(page).first.hover()

        glance = page.get_by_role("tooltip")
        expect(glance).to_be_visible()
        expect(glance).to_contain_text("Your answer says 410 g. This source says 120 g.")
        expect(glance.locator("blockquote")).to_contain_text("weighs 120 g without its cable.")
        expect(glance).to_contain_text("[1] Aero 5 manual")
        glance.hover()
        page.wait_for_timeout(400)  # longer than it stays when the mouse is gone
        expect(glance).to_be_visible()
        page.mouse.move(5, 5)
        expect(glance).not_to_be_visible()

    def test_is_shown_to_the_keyboard_and_ended_by_escape_alone(self, page, checked):
        page.goto(checked)
        page.locator("#m1").focus()
        page.keyboard.press("Tab")
        expect(chips(page).first).to_be_focused()

        glance = page.get_by_role("tooltip")
        expect(glance).to_be_visible()
        expect(chips(page).first).to_have_attribute("aria-describedby", "peek")
        page.keyboard.press("Escape")
        expect(glance).not_to_be_visible()
        expect(chips(page).first).to_be_focused()
        page.keyboard.press("Tab")
        expect(glance).to_contain_text("Supported")
        page.keyboard.press("Enter")
        expect(glance).not_to_be_visible()
        expect(page.locator("#panel-title")).to_be_focused()

    def test_stays_within_a_narrow_window(self, open_page, checked):
        page = open_page(checked, viewport={"width": 420, "height": 500})

        chips(page).last.hover()

        expect(page.get_by_role("tooltip")).to_be_in_viewport(ratio=1)


def words_marked(page):
    return "".join(page.locator("#panel .sheet mark").all_text_contents())


class TestAPrintedPage:
    @pytest.mark.parametrize("look", LOOKS)
    def test_is_shown_with_the_passage_marked_on_it(self, open_page, printed, look):
        page = open_page(printed, **LOOKS[look])

        chips(page).first.click()

        expect(page.locator("#panel figcaption")).to_contain_text("Page 2 of 3")
        expect(page.locator("#panel .sheet mark").first).to_be_in_viewport()
        assert words_marked(page) == "The pump weighs 940 g without its cable"
        assert style(page.locator("#panel .sheet mark").first, "borderBottomStyle") == "dashed"
        expect(page.locator("#panel .document-text")).not_to_be_visible()
        assert darkest(page) < 100

    def test_is_marked_across_lines_and_hyphens(self, page, printed):
        page.goto(printed)

        chips(page).nth(1).click()

        expect(page.locator("#panel .sheet mark").first).to_be_visible()
        assert words_marked(page) == (
            "Clean the filter of the Nimbus every four weeks withcold water only"
        )

    def test_that_is_silent_is_shown_without_a_mark(self, page, printed):
        page.goto(printed)

        chips(page).nth(2).click()

        expect(page.locator("#panel figcaption")).to_contain_text("Page 2 of 3")
        expect(page.locator("#panel .sheet mark")).to_have_count(0)
        expect(page.locator("#panel .sheet")).not_to_contain_text("could not be marked")

    def test_on_which_the_passage_is_not_found_says_so(self, page, printed):
        nothing = 'data-marked="[&#34;Nothing of it&#34;]"'

        def changed(route):
            body = re.sub('data-marked="[^"]*"', nothing, route.fetch().text())
            route.fulfill(body=body, content_type="text/html")

        page.route("**/sources/1?m=1*", changed)
        page.goto(printed)

        chips(page).first.click()

        expect(page.locator("#panel .sheet")).to_contain_text("could not be marked on this page")
        expect(page.locator("#panel .sheet canvas")).to_be_visible()

    def test_that_cannot_be_shown_leaves_its_text(self, page, printed, expected_complaints):
        expected_complaints.append("status of 404")
        page.route("**/original", lambda route: route.fulfill(status=404))
        page.goto(printed)

        chips(page).first.click()

        expect(page.locator("#panel .sheet")).to_contain_text("cannot be shown here")
        expect(page.locator("#panel .document-text mark")).to_be_visible()

    def test_is_made_larger_and_smaller_with_the_keyboard(self, page, printed):
        page.goto(printed)
        chips(page).first.click()
        expect(page.locator("#panel .sheet mark").first).to_be_visible()
        canvas = "document.querySelector('#panel .sheet canvas')?.getBoundingClientRect().width"
        before = page.evaluate(canvas)

        page.get_by_role("button", name="Larger").press("Enter")
        smaller = page.get_by_role("button", name="Smaller")
        expect(smaller).to_be_focused()
        expect(page.locator("#panel .sheet mark").first).to_be_in_viewport()
        page.wait_for_function(f"before => {canvas} > 1.5 * before", arg=before)
        smaller.press("Enter")

        expect(page.get_by_role("button", name="Larger")).to_be_focused()
        page.wait_for_function(f"before => Math.abs({canvas} - before) < 20", arg=before)

    def test_leads_to_the_original_and_keeps_its_text_without_scripts(self, open_page, printed):
        page = open_page(printed, has_scripts=False)

        chips(page).first.click()

        expect(page.locator(".document-text mark")).to_contain_text("weighs 940 g")
        expect(page.locator(".sheet")).not_to_be_visible()
        link = page.get_by_role("link", name="Open the original").get_attribute("href")
        assert link.endswith("/original#page=2")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download it").click()
        assert Path(download.value.path()).read_bytes() == handbook()

    @pytest.mark.parametrize("look", LOOKS)
    def test_can_be_read_by_everybody(self, open_page, printed, look):
        if not AXE.exists():
            pytest.skip("axe-core is not installed: make clients")
        page = open_page(printed, **LOOKS[look])
        chips(page).first.click()
        expect(page.locator("#panel .sheet mark").first).to_be_visible()

        assert found_by_axe(page, look) == []


class TestARowOfASheet:
    def test_is_shown_with_its_number_and_leads_to_its_table(self, open_page, live):
        page = open_page(conversation(live, "Lamp 77", "Lamp 77 brought 999 in the North [1]."))

        chips(page).first.click()

        expect(page.locator("#panel-title")).to_contain_text("This source says 177.")
        expect(page.locator("#panel-place")).to_have_text(
            re.compile("sales · rows 42–81 · row 78$")
        )
        row = page.locator("#panel tr.is-marked")
        expect(row).to_be_in_viewport()
        assert row.locator("td").all_text_contents() == ["78", "Lamp 77", "North", "177"]
        page.get_by_role("link", name="See the row in its table").click()
        expect(page.locator("tr.is-marked")).to_contain_text("Lamp 77")
        expect(page.locator("tr.is-marked")).to_be_in_viewport()
        expect(page.get_by_text("Row 78 is marked.")).to_be_visible()


def darkest(page):
    """How dark the darkest point of the drawn page is: of one without letters it is white."""
    return page.evaluate(
        """() => {
            const canvas = document.querySelector("#panel .sheet canvas");
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return data.filter((_, at) => at % 4 === 0).reduce((a, b) => Math.min(a, b), 255);
        }"""
    )


class TestCopy:
    @pytest.fixture
    def copied(self, open_page, checked):
        page = open_page(checked, permissions=["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy").click()
        expect(page.locator("#status")).to_have_text("Copied with its sources.")

        def copied(kind):
            return page.evaluate(
                """async (kind) => {
                    const [item] = await navigator.clipboard.read();
                    return (await item.getType(kind)).text();
                }""",
                kind,
            )

        return copied

    def test_gives_markdown_with_warnings_and_sources(self, copied):
        text = copied("text/plain")

        assert "cable [1]. *(⚠ The source says something else.)* The battery" in text
        assert text.endswith("*(no source)*\n\n[1] Aero 5 manual, § Weight and battery (aero.md)")

    def test_gives_rich_text_with_warnings_and_sources(self, copied):
        html = copied("text/html")

        assert re.search(
            r"cable&nbsp;\[1\]\. <em>\(⚠ The source says something else\.\)</em>", html
        )
        assert "[1] Aero 5 manual, § Weight and battery (aero.md)</p>" in html
        assert not re.search("class|aria|Warning", html)


class TestEverybodyCanReadIt:
    @pytest.mark.parametrize("look", LOOKS)
    def test_the_conversation_its_passage_and_its_pages(self, open_page, checked, look):
        if not AXE.exists():
            pytest.skip("axe-core is not installed: make clients")
        page = open_page(checked, **LOOKS[look])
        assert found_by_axe(page, look) == []

        chips(page).first.click()
        expect(page.locator("#panel mark")).to_be_visible()
        assert found_by_axe(page, look) == []
        for path in (f"{checked}/sources/1?m=1", f"{checked}/summaries", "/documents", "/"):
            page.goto(path)
            assert found_by_axe(page, look) == [], path

    @pytest.mark.parametrize("look", LOOKS)
    def test_a_glance(self, open_page, checked, look):
        if not AXE.exists():
            pytest.skip("axe-core is not installed: make clients")
        page = open_page(checked, **LOOKS[look])
        chips(page).first.focus()
        expect(page.get_by_role("tooltip")).to_be_visible()

        assert found_by_axe(page, look) == []


def found_by_axe(page, look):
    """What is wrong, as axe tells it; it runs beside the page, whose own policy lets nothing in."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    rules = OF_COLOURS if look in ("dark", "forced colours") else {}
    violations = page.evaluate(VIOLATIONS, rules)  # what is right is not told: most of it
    return [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in violations]
