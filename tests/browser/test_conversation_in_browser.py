"""Asking and reading in a real browser."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from rag.records import MessageStatus
from rag.runtime.budget import Lane

pytestmark = pytest.mark.slow
QUESTION = "How do I reset the Aero 5 Pro to factory settings?"
NARROW = {"viewport": {"width": 360, "height": 740}}


def send(page, question=QUESTION):
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")


def begin(page):
    """Until the first words of the answer are seen."""
    send(page)
    expect(page.locator(".answer.is-live .prose p")).to_have_text(re.compile(r"\w+"))


def ask(page, question=QUESTION):
    send(page, question)
    expect(page.locator(".answer").last).to_have_attribute("data-status", re.compile("."))


def chip(page):
    return page.locator(".answer :is(.answer-card, .prose) a.cite").first


def is_scrolled_sideways(page):
    return page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )


def long_conversation(live, turns=30):
    handle = live.application.store.create("local", title="Long")
    for number in range(turns):
        turn = handle.begin(f"Question {number}?")
        done = replace(turn.answer, content=f"Answer {number}.", status=MessageStatus.COMPLETE)
        handle.finish(done)
    return handle


class TestLongConversations:
    @pytest.fixture
    def long(self, live):
        return f"/sessions/{long_conversation(live, turns=50).id}"

    def test_are_opened_at_the_last_turn(self, page, long):
        page.goto(long)

        expect(page.locator(".question").last).to_be_in_viewport()
        expect(page.locator(".question").first).not_to_be_in_viewport()

    def test_offer_the_way_back_to_whoever_reads_far_above_the_end(self, page, long):
        page.goto(long)
        expect(page.locator("[data-to-newest]")).not_to_be_visible()
        page.evaluate("scrollTo(0, 0)")

        page.get_by_role("button", name="Newest turn").click()

        expect(page.locator(".question").last).to_be_in_viewport()
        expect(page.locator(".question").last).to_be_focused()
        expect(page.locator("[data-to-newest]")).not_to_be_visible()

    def test_are_left_where_they_are_when_the_page_is_loaded_again(self, page, long):
        page.goto(long)
        page.evaluate("scrollTo(0, 300)")

        page.reload()

        assert page.evaluate("scrollY") == 300

    def test_a_link_leads_to_its_turn_however_long_ago_it_was(self, page, long):
        page.goto(f"{long}#m5")

        expect(page.locator("#m5")).to_be_in_viewport()
        expect(page).to_have_url(re.compile(r"\?at=5#m5$"))

    def test_a_link_to_a_turn_that_never_was_shows_the_newest(self, page, long):
        page.goto(f"{long}#m999")

        expect(page).to_have_url(re.compile(r"\?at=999#m999$"))
        expect(page.locator(".question").last).to_contain_text("Question 49?")

    def test_earlier_turns_are_put_before_the_newest_and_read_on_there(self, page, long):
        page.goto(long)
        expect(page.locator(".question")).to_have_count(20)

        page.locator("[data-earlier]").focus()
        page.keyboard.press("Enter")

        expect(page.locator(".question")).to_have_count(40)
        expect(page.locator(".question").first).to_contain_text("Question 10?")
        expect(page.locator(".answer").nth(19)).to_be_focused()
        expect(page.locator("#status")).to_have_text("20 earlier turns are shown.")
        expect(page.locator("[data-later], [data-newest]")).to_have_count(0)

    def test_are_read_from_the_first_turn_to_the_last(self, page, long):
        page.goto(long)
        page.get_by_role("link", name="First turns").click()

        for count in (40, 50):
            page.locator("[data-later]").click()
            expect(page.locator(".question")).to_have_count(count)

        expect(page.locator(".more")).to_have_count(0)
        asked = page.locator(".question p").all_text_contents()
        assert asked == [f"Question {number}?" for number in range(50)]


class TestKeyboard:
    def test_a_slash_leads_to_the_question_and_is_a_slash_there(self, page):
        ask(page)
        chip(page).focus()

        page.keyboard.press("/")
        expect(page.locator("#question")).to_be_focused()
        page.keyboard.press("/")

        expect(page.locator("#question")).to_have_value("/")

    def test_a_slash_leads_to_the_search_where_nothing_is_asked(self, open_page):
        page = open_page("/sessions")

        page.keyboard.press("/")

        expect(page.locator("#search-page")).to_be_focused()

    def test_the_second_tab_offers_to_skip_to_the_question(self, page):
        ask(page)
        page.reload()

        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")

        expect(page.locator("#question")).to_be_focused()

    def test_escape_closes_the_passage_first_and_then_stops_the_answer(self, page, held_writer):
        held_writer.set()
        ask(page)
        held_writer.clear()
        page.locator("#question").fill("How heavy is the Aero 5?")
        page.keyboard.press("Enter")
        expect(page.locator(".answer.is-live .prose p")).to_have_text(re.compile(r"\w+"))
        chip(page).click()
        expect(page.locator("#panel #passage")).to_be_visible()

        page.keyboard.press("Escape")
        expect(page.locator("#panel")).not_to_be_visible()
        page.locator("#search-all").press("Escape")
        expect(page.locator("[data-stop]")).to_be_visible()
        page.locator("#question").press("Escape")

        expect(page.locator(".answer").last).to_have_attribute("data-status", "interrupted")

    def test_a_question_half_written_is_there_after_a_look_elsewhere(self, page):
        page.locator("#question").fill("How heavy is")

        page.goto("/documents")
        page.goto("/")
        expect(page.locator("#question")).to_have_value("How heavy is")
        ask(page)
        page.goto("/")

        expect(page.locator("#question")).to_have_value("")


class TestWithScripts:
    def test_an_answer_comes_with_chips_and_without_a_new_page(self, page):
        page.evaluate("window.isStillHere = true")

        ask(page)

        expect(page.locator(".question")).to_have_text(QUESTION)
        expect(chip(page)).to_have_text(re.compile(r"\[\d+\]"))
        expect(page).to_have_url(re.compile("/sessions/[0-9a-f]+$"))
        expect(page).to_have_title(re.compile("How do I reset"))
        expect(page.locator(".sessions a[aria-current]")).to_have_text(QUESTION)
        expect(page.locator("#side .source").first).to_be_visible()
        assert page.evaluate("window.isStillHere")

    def test_words_are_shown_while_the_rest_is_written(self, page, held_writer):
        send(page)

        live = page.locator(".answer.is-live")
        expect(live.locator(".prose p")).to_have_text(re.compile(r"\w+"))
        expect(page.get_by_role("log")).to_have_attribute("aria-busy", "true")
        expect(page.locator("[data-stop]")).to_be_visible()
        held_writer.set()

        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
        expect(page.locator("#status")).to_have_text(re.compile("ready, with"))
        expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")
        expect(page.locator("[type=submit].send")).to_be_visible()

    @pytest.mark.parametrize("size", [{"viewport": {"width": 1280, "height": 800}}, NARROW])
    def test_nothing_moves_when_the_answer_is_whole(self, open_page, held_writer, size):
        page = open_page(reduced_motion="reduce", **size)
        begin(page)
        top = "document.querySelector('.question').getBoundingClientRect().top"
        before = page.evaluate(top)

        held_writer.set()

        expect(page.locator(".head h1")).to_be_visible()
        assert page.evaluate(top) == pytest.approx(before, abs=1)

    def test_a_chip_opens_the_passage_in_its_surroundings(self, page):
        ask(page)

        chip(page).click()

        panel = page.locator("#panel")
        expect(panel.locator("mark").first).to_be_visible()
        expect(panel.locator("#panel-title")).to_have_text(re.compile(r"^\[\d+\] Aero 5"))
        assert len(panel.locator(".document-text").text_content()) > len(
            panel.locator("mark").first.text_content()
        )
        assert "/sources/" not in page.url

    def test_the_very_sentence_is_marked_and_in_sight(self, page):
        ask(page)
        stated = page.locator(".answer .card-passage mark").first.text_content()

        chip(page).click()

        found = page.locator("#panel #passage")
        expect(found).to_be_in_viewport()
        assert stated in found.text_content()
        assert len(found.text_content()) < len(stated) + 5

    def test_everything_is_done_with_the_keyboard(self, page):
        expect(page.locator("#question")).to_be_focused()
        page.keyboard.type("How do I reset")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("the Aero 5 Pro?")
        page.keyboard.press("Enter")
        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
        expect(page.locator(".question p")).to_have_text(
            "How do I reset\nthe Aero 5 Pro?", use_inner_text=True
        )
        expect(page.locator("#question")).to_be_focused()

        for _ in range(40):
            page.keyboard.press("Shift+Tab")
            if page.evaluate("document.activeElement.matches('.answer-card a.cite')"):
                break
        number = page.evaluate("document.activeElement.dataset.n")
        page.keyboard.press("Enter")

        expect(page.locator("#panel mark").first).to_be_visible()
        expect(page.locator("#panel-title")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("#panel")).not_to_be_visible()
        assert page.evaluate("document.activeElement.dataset.n") == number

    def test_stop_ends_the_answer_and_offers_another_try(self, page, held_writer):
        begin(page)

        page.locator("[data-stop]").click()

        expect(page.locator(".answer")).to_have_attribute("data-status", "interrupted")
        expect(page.locator(".answer .note")).to_have_text("Stopped.")
        expect(page.locator(".answer .prose")).to_have_text(re.compile(r"\w+"))
        expect(page.locator("#status")).to_have_text("Stopped.")
        page.locator("[data-regenerate] button").click()
        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
        expect(page.locator(".question")).to_have_count(1)
        expect(chip(page)).to_be_visible()

    def test_whoever_has_to_wait_is_told_how_many_wait_before(self, page, live, held_writer):
        lane = live.app.extensions["groundnote-lane"]
        inside = [lane.join("others") for _ in range(lane.capacity)]
        others = [lane.join("others") for _ in range(2)]

        send(page)
        waiting = page.locator(".answer.is-live .waiting")
        expect(waiting).to_have_text("2 questions before yours")
        lane.leave(others.pop())
        expect(waiting).to_have_text("1 question before yours")
        lane.leave(others.pop())
        expect(waiting).to_have_text("Your question is next")
        held_writer.set()
        for ticket in inside:
            lane.leave(ticket)

        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")

    def test_a_question_that_waited_in_vain_goes_back_to_its_form(
        self, page, live, held_writer, monkeypatch
    ):
        monkeypatch.setattr(Lane.wait, "__kwdefaults__", {"patience_seconds": 0.5})
        lane = live.app.extensions["groundnote-lane"]
        inside = [lane.join("others") for _ in range(lane.capacity)]
        send(page)

        expect(page.locator("#form-error")).to_have_text(re.compile("Many questions are being"))
        expect(page.locator("#question")).to_have_value(QUESTION)
        expect(page.locator(".question")).to_have_count(0)
        held_writer.set()
        for ticket in inside:
            lane.leave(ticket)
        page.keyboard.press("Enter")
        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")

    def test_an_answer_goes_on_while_nobody_looks(self, page, held_writer):
        begin(page)

        page.reload()
        expect(page.locator(".answer.is-live .prose p")).to_have_text(re.compile(r"\w+"))
        held_writer.set()

        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
        expect(page.locator(".question")).to_have_count(1)

    def test_a_second_tab_sees_the_running_answer_and_its_stop_ends_the_first(
        self, page, held_writer
    ):
        begin(page)
        second = page.context.new_page()
        second.goto(page.url)
        expect(second.locator(".answer.is-live .prose p")).to_have_text(re.compile(r"\w+"))

        second.locator("[data-stop]").click()

        for tab in (page, second):
            expect(tab.locator(".answer")).to_have_attribute("data-status", "interrupted")
            expect(tab.locator(".answer .note")).to_have_text("Stopped.")
            expect(tab.locator(".question")).to_have_count(1)

    def test_a_refused_question_goes_back_to_its_form(self, page, expected_complaints):
        expected_complaints.append("status of 413")
        ask(page)
        long = "why " * 6000

        page.locator("#question").fill(long)
        page.keyboard.press("Enter")

        expect(page.locator("#form-error")).to_have_text(re.compile("20,000"))
        expect(page.locator("#question")).to_have_value(long)
        expect(page.locator(".question")).to_have_count(1)

    def test_a_question_is_kept_while_the_server_cannot_be_reached(self, page, expected_complaints):
        expected_complaints.append("ERR_INTERNET_DISCONNECTED")
        page.context.set_offline(True)
        send(page)
        expect(page.locator("#form-error")).to_have_text(re.compile("cannot be reached"))
        expect(page.locator("#question")).to_have_value(QUESTION)

        page.context.set_offline(False)
        page.keyboard.press("Enter")

        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
        expect(page.locator("#form-error")).to_have_count(0)

    def test_a_follow_up_can_be_edited_as_it_was_searched_for(self, page):
        ask(page)
        ask(page, "And the Aero 5?")
        searched = page.locator(".searched span").text_content()

        page.locator(".searched [data-edit]").click()

        assert searched != "And the Aero 5?"
        expect(page.locator("#question")).to_have_value(searched)
        expect(page.locator("#question")).to_be_focused()
        expect(page.locator("[data-regenerate]")).to_have_count(1)

    def test_an_earlier_question_is_edited_in_another_version(self, page):
        ask(page)
        ask(page, "And the Aero 5?")
        first = page.url.partition("#")[0]

        page.locator(".question").first.hover()
        page.get_by_role("link", name="Edit this question").first.click()
        expect(page.locator("#question")).to_have_value(QUESTION)
        expect(page.locator("#question")).to_be_focused()
        page.locator("#question").fill("How much do the Cantoro speakers weigh?")
        page.keyboard.press("Enter")

        expect(page.locator(".versions [aria-current]")).to_have_text("2 of 2")
        expect(page.locator(".answer[data-status=complete]")).to_have_count(1)
        assert not page.url.startswith(first)
        ask(page, "And the Aero 5?")  # goes on in this version
        page.locator(".versions a[data-version='-1']").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".versions [aria-current]")).to_have_text("1 of 2")
        assert page.url.startswith(first)
        expect(page.locator(".question")).to_have_count(2)
        expect(page.locator("#question")).to_have_value("")  # what was asked stands in the other

    def test_the_keyboard_stays_at_an_answer_that_is_written_again(self, page):
        ask(page)
        page.locator("[data-regenerate] button").focus()

        page.keyboard.press("Enter")

        expect(page.locator("#status")).to_have_text(re.compile("ready"))
        expect(page.locator(".answer[data-status]")).to_be_focused()

    def test_a_passage_is_copied_with_its_place(self, open_page):
        page = open_page(permissions=["clipboard-read", "clipboard-write"])
        ask(page)
        chip(page).click()
        passage = page.locator("#panel #passage").first.text_content()

        page.get_by_role("button", name="Copy the passage").click()

        expect(page.locator("#panel [data-copy]")).to_have_text(re.compile("Copied"))
        copied = page.evaluate("navigator.clipboard.readText()")
        assert passage in copied
        assert re.search(r"\n\n\[\d+\] Aero 5 .*\(networking/aero-5", copied)
        expect(page.locator("#panel [data-copy]")).to_have_text(re.compile("Copy the passage"))

    def test_the_link_to_an_answer_is_copied(self, open_page):
        page = open_page(permissions=["clipboard-read", "clipboard-write"])
        ask(page)

        page.locator("[data-link]").click()

        expect(page.locator("[data-link]")).to_have_text(re.compile("Copied"))
        assert re.search(
            r"/sessions/\w+\?at=1#m1$", page.evaluate("navigator.clipboard.readText()")
        )
        assert "at=1" not in page.url

    def test_an_example_is_asked_with_one_click(self, page):
        example = page.locator(".starters button").first
        words = example.text_content().strip()

        example.click()

        expect(page.locator(".question")).to_have_text(words)
        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")

    def test_the_answer_is_copied_with_its_sources(self, open_page):
        page = open_page(permissions=["clipboard-read", "clipboard-write"])
        ask(page)

        page.locator("[data-copy]").click()

        expect(page.locator("[data-copy]")).to_have_text(re.compile("Copied"))
        copied = page.evaluate("navigator.clipboard.readText()")
        assert re.search(r"\n\n\[\d+\] Aero 5 .*\(networking/aero-5", copied)

    def test_a_question_asked_below_older_turns_leads_to_the_newest(self, page, live):
        handle = long_conversation(live)
        page.goto(f"/sessions/{handle.id}?before=20")

        send(page)

        expect(page.locator(".question").last).to_have_text(QUESTION)
        expect(page).to_have_url(re.compile(f"/sessions/{handle.id}#m60"))
        expect(page.locator(".answer").last).to_have_attribute("data-status", "complete")


class TestAppearance:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_narrow_pages_do_not_scroll_sideways(self, open_page, scheme):
        page = open_page(color_scheme=scheme, **NARROW)
        ask(page)
        conversation = page.url

        parts = ("", "/sources", "/sources/1", "/settings", "/summaries", "/delete")
        paths = [
            "/",
            "/documents",
            "/sessions",
            "/search?q=Aero",
            *(conversation + p for p in parts),
        ]
        for path in paths:
            page.goto(path)
            assert not is_scrolled_sideways(page), path

    def test_a_dark_scheme_is_dark(self, open_page):
        dark = open_page(color_scheme="dark")

        colour = dark.evaluate("getComputedStyle(document.documentElement).backgroundColor")

        assert max(map(int, re.findall(r"\d+", colour))) < 60

    def test_a_narrow_page_shows_evidence_as_a_sheet_that_escape_closes(self, open_page):
        page = open_page(**NARROW)
        ask(page)

        chip(page).click()
        expect(page.locator("#panel mark").first).to_be_visible()
        page.keyboard.press("Escape")

        expect(page.locator("#panel")).not_to_be_visible()
        expect(chip(page)).to_be_focused()

    def test_a_low_window_belongs_to_what_is_read(self, open_page):
        page = open_page(viewport={"width": 320, "height": 256})
        ask(page)
        page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")

        covered = page.evaluate(
            """[...document.querySelectorAll(".bar, .head-place, .dock")]
                .map((each) => each.getBoundingClientRect())
                .reduce((sum, {top, bottom}) =>
                    sum + Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0)), 0)"""
        )

        assert covered < 128

    def test_what_is_too_wide_is_scrolled_with_the_keyboard(self, open_page, live):
        handle = live.application.store.create("local", title="Wide")
        turn = handle.begin("How wide?")
        text = "```\n" + "wide " * 100 + "\n```"
        handle.finish(replace(turn.answer, content=text, status=MessageStatus.COMPLETE))

        page = open_page(f"/sessions/{handle.id}", **NARROW)

        assert not is_scrolled_sideways(page)
        expect(page.locator(".prose pre")).to_have_attribute("tabindex", "0")

    def test_the_first_tab_offers_to_skip_to_the_content(self, open_page):
        page = open_page("/documents")

        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")

        expect(page.locator("main")).to_be_focused()

    def test_focus_can_be_seen(self, page):
        page.locator(".sidebar .button").focus()
        page.keyboard.press("Tab")

        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")

        assert outline == "solid"

    def test_print_leaves_the_controls_out(self, page):
        ask(page)

        page.emulate_media(media="print")

        expect(page.locator(".dock")).not_to_be_visible()
        expect(page.locator(".sidebar")).not_to_be_visible()
        expect(page.locator(".answer .answer-card")).to_be_visible()
        sides = page.locator(".question").evaluate(
            "each => [each, each.nextElementSibling].map((e) => e.getBoundingClientRect().left)"
        )
        assert sides[0] == sides[1]

    def test_all_of_a_long_conversation_is_printed_from_its_menu(self, page, live):
        page.goto(f"/sessions/{long_conversation(live, turns=50).id}")
        page.locator(".head .menu summary").click()
        page.get_by_role("link", name="Print").click()

        expect(page.locator(".asked")).to_have_count(50)
        page.evaluate("print = () => (document.body.dataset.isPrinted = true)")
        page.locator("[data-print]").click()
        expect(page.locator("body")).to_have_attribute("data-is-printed", "true")
        page.emulate_media(media="print")
        expect(page.locator("[data-print]")).not_to_be_visible()


class TestWithoutScripts:
    def test_from_the_question_to_the_evidence_and_back(self, open_page):
        page = open_page(has_scripts=False)

        page.locator("#question").fill(QUESTION)
        page.locator("[type=submit].send").click()
        expect(page.locator(".question")).to_have_text(QUESTION)
        chip(page).click()
        expect(page.locator(".document-text mark").first).to_be_visible()
        page.locator(".crumb a").click()
        page.locator("#question").fill("And the Aero 5?")
        page.locator("[type=submit].send").click()

        expect(page.locator(".answer")).to_have_count(2)
        expect(page.locator(".hint")).not_to_be_visible()

    def test_a_slow_answer_is_waited_for_by_a_page_that_loads_itself_again(
        self, open_page, held_writer
    ):
        page = open_page(has_scripts=False)
        page.locator("#question").fill(QUESTION)
        page.locator("[type=submit].send").click()
        expect(page.locator("[data-pending]")).to_contain_text("This answer is being written.")
        for loaded in (r"again=1#m0$", r"[0-9a-f]#m0$"):
            expect(page).to_have_url(re.compile(loaded))
        held_writer.set()

        expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
        expect(page.locator("[data-pending]")).to_have_count(0)
        expect(chip(page)).to_be_visible()
