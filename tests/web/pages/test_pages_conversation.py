"""The conversation without scripts: plain forms, from the question to the answer."""

import sys
from collections import OrderedDict
from dataclasses import replace

import pytest
from sqlalchemy import event

from rag.errors import ModelUnavailable
from rag.records import (
    EVERYTHING,
    Judging,
    LineMark,
    MessageStatus,
    SetAside,
    Summary,
    SummaryLine,
    SummarySection,
    Verdict,
)
from tests.browser.paged_application import (
    SUPPORTED,
    UNSUPPORTED,
    answer_to,
)
from tests.made import made_chunk, made_hit
from tests.web.fake_application import REPORT

SCRIPT = "<script>alert('question')</script>"


def line(text, message):
    """Of a summary, as it is quoted from a message."""
    return SummaryLine(SummarySection.ANSWERED, text, LineMark.QUOTED, (message,), (1,))


class TestAsking:
    def test_the_first_question_makes_a_session_and_shows_its_answer(self, get, post):
        response = post("/ask", content="How heavy is it?\r\nIn grams.")

        assert response.status == 303
        page = get(response.location)
        assert page.text(".question") == "How heavy is it? In grams."
        assert page.text(".answer .prose") == "It weighs 120 g [1]."
        assert page.text("title").startswith("How heavy is it?")
        assert page.text(".sessions a") == "How heavy is it? In grams."

    def test_goes_to_the_question_that_was_asked(self, asked, post):
        response = post(f"{asked}/ask", content="And the other?")

        assert response.location == f"{asked}#m2"

    def test_a_marker_leads_to_the_passage_in_its_surroundings(self, get, asked):
        link = get(asked).all(".answer .prose a.cite")[0]

        page = get(link.attributes["href"])

        assert "Aero 5 manual" in link.attributes["aria-label"]
        assert page.text(".document-text mark") == "The Aero 5 weighs 120 g."
        assert "Before the weight." in page.text(".document-text")
        assert "After the weight." in page.text(".document-text")
        assert "[1] Aero 5 manual" in page.text("h1")
        assert "Weight" in page.text(".evidence-place")

    @pytest.mark.parametrize("url", ["/ask", "{asked}/ask"])
    def test_keeps_a_question_that_cannot_be_asked(self, application, asked, post, url):
        before = len(application.store.sessions("local"))

        page = post(url.format(asked=asked), content="  \n ")

        assert page.status == 400
        assert "question is empty" in page.text("[role=alert]")
        assert page.all("textarea")[0].text(deep=True) == "  \n "
        assert len(application.store.sessions("local")) == before

    def test_shows_the_html_of_a_question_as_text(self, get, post):
        page = get(post("/ask", content=SCRIPT).location)

        assert page.text(".question") == SCRIPT
        assert all("src" in script.attributes for script in page.all("script"))

    def test_the_question_of_a_link_stands_in_the_form_and_is_not_asked(self, get, asked):
        page = get(f"{asked}?ask=What+about+{SCRIPT}")

        assert page.all("textarea")[0].text() == f"What about {SCRIPT}"
        assert len(page.all(".question")) == 1

    def test_a_model_that_failed_leaves_the_question_and_a_way_to_try_again(
        self, application, get, post
    ):
        application.assistant.failure = ModelUnavailable("The model server is down.")
        page = get(post("/ask", content="How heavy?").location)

        application.assistant.failure = None
        again = page.all("form[data-regenerate]")[0]
        index = again.css_first("[name=index]").attributes["value"]
        response = post(again.attributes["action"], index=index)

        assert page.text(".answer.is-failed")
        assert "Try again" in again.text()
        assert response.location.endswith("#m1")
        assert get(response.location).text(".answer .prose") == "It weighs 120 g [1]."

    def test_only_the_last_answer_can_be_written_again(self, asked, get, post):
        post(f"{asked}/ask", content="And the other?")

        page = get(asked)

        assert len(page.all(".answer")) == 2
        assert len(page.all("[data-regenerate]")) == 1

    def test_regenerating_without_an_index_says_what_is_missing(self, asked, post):
        page = post(f"{asked}/regenerate")

        assert page.status == 400
        assert "index is missing" in page.text()

    def test_lists_what_is_cited_apart_from_what_was_only_read(self, asked, get):
        page = get(asked)

        def numbers(part):
            return [each.text() for each in page.all(f"#side {part} .source-n")]

        assert numbers("> ol") == ["[1]"]
        assert numbers("details") == ["[3]", "[2]"]


class TestNewConversation:
    TEXT = "Use a dry cloth. " * 8
    ASKING = (("2026-01-01", TEXT), ("How do I clean it without water?", TEXT), ("Why?", TEXT))

    @pytest.mark.parametrize(("relevance", "offered"), [(0.9, True), (0.1, False)])
    def test_offers_a_question_of_a_document_that_the_search_answers(
        self, application, get, monkeypatch, relevance, offered
    ):
        monkeypatch.setattr(sys.modules["rag.web.pages.conversations"], "_tried", OrderedDict())
        application.add("faq.md", "Questions", list(self.ASKING), ["dry"] * 3)
        (faq,) = [d for d in application.documents.documents(EVERYTHING) if d.name == "faq.md"]
        chunk = made_chunk("faq", self.TEXT, document_id=faq.id)
        application.retriever.hits = [made_hit(chunk, relevance=relevance)]

        starters = [button.text().strip() for button in get("/").all(".starters button")]

        assert starters == ["How do I clean it without water?"] * offered

    def test_offers_no_heading_as_a_question(self, application, get):
        application.add("care.md", "Care guide", [("Storing", self.TEXT)], ["dry"])

        assert not get("/").all(".starters")

    def test_an_empty_library_is_told_what_to_do(self, application, get):
        application.documents.delete(application.retriever.hits[0].chunk.document_id)

        page = get("/")

        assert "Begin with your documents" in page.text()
        assert page.link("Add documents") == "/documents"
        assert not page.all(".starters")


class TestAnswers:
    def test_flags_what_its_source_does_not_carry(self, session, get):
        answer_to(
            session,
            "Q",
            "It is red [1]. It weighs 120 g [2]. It can fly.",
            flags=[("[1]", UNSUPPORTED, False), ("[2]", SUPPORTED, True)],
            unsourced=["It can fly."],
        )

        page = get(f"/sessions/{session.id}")

        assert page.text(".cite.is-warned") == "[1]"
        assert page.text(".cite.is-supported.is-attributed") == "[2]"
        assert page.text(".prose .unsourced") == "It can fly."
        assert page.text(".prose") == (
            "It is red [1]. Warning: The source does not speak of this. It weighs 120 g [2]. "
            "It can fly. no source"
        )

    def test_what_was_not_checked_says_nothing(self, session, get):
        answer_to(session, "Q", "It is light [1].", flags=[("[1]", Verdict.OPEN, False)])

        page = get(f"/sessions/{session.id}")

        chip = page.all(".prose .cite")[0].attributes
        assert (chip["class"], chip["aria-label"]) == ("cite", "Source 1: Aero 5 manual, § Weight")
        assert page.text(".prose") == "It is light [1]."

    def test_what_a_model_said_is_folded_below_the_passages_with_the_reason(self, session, get):
        aside = SetAside("It weighs [1] a lot. <b>", "It cites nothing that says so.")
        message = answer_to(session, "Q", "Passages.")
        session.judge(replace(message, answer=replace(message.answer, set_aside=aside)))

        page = get(f"/sessions/{session.id}")

        assert page.text(".set-aside") == (
            "The model said It cites nothing that says so. It weighs [1] a lot. <b>"
        )

    def test_a_check_that_failed_says_so(self, session, get):
        message = answer_to(session, "Q", "It is light [1].")
        failed = replace(
            message.answer, judging=Judging.FAILED, judging_failure="The check failed: no reply."
        )
        session.judge(replace(message, answer=failed))

        assert "The check failed: no reply." in get(f"/sessions/{session.id}").text(".answer")

    def test_a_refusal_looks_like_one(self, session, get):
        answer_to(session, "Q", "The documents do not say.", declined=True)

        page = get(f"/sessions/{session.id}")

        assert "Not in the documents" in page.text(".is-declined")
        assert get(page.link("nearest passages")).all(".passages li")

    @pytest.mark.parametrize("made_by", ["tables", "library"])
    def test_asking_back_is_no_refusal(self, session, get, made_by):
        answer_to(session, "Q", "Which one do you mean?", declined=True, model=made_by)

        page = get(f"/sessions/{session.id}")

        assert "Not in the documents" not in page.text(".answer")

    def test_a_follow_up_says_what_was_searched_for_and_lets_edit_it(self, session, get):
        answer_to(session, "And it?", "Yes.", resolved_query="And the Aero 5?", is_followup=True)

        page = get(f"/sessions/{session.id}")

        assert "Searched for: And the Aero 5?" in page.text(".searched")
        assert get(page.link("Edit")).all("textarea")[0].text() == "And the Aero 5?"

    def test_a_resolved_question_that_is_the_same_is_not_repeated(self, session, get):
        answer_to(session, "And it?", "Yes.", resolved_query="And it?", is_followup=True)

        assert not get(f"/sessions/{session.id}").all(".searched")

    def test_copies_with_its_footnotes(self, asked, get):
        button = get(asked).all("[data-copy]")[0].attributes

        assert button["data-copy"] == "It weighs 120 g [1]."
        assert button["data-sources"] == "[1] Aero 5 manual, § Weight (manual.md)"

    def test_copies_what_is_wrong_with_a_statement_beside_it(self, session, get):
        flags = [("[1]", UNSUPPORTED, False)]
        text = "It is *red* [1]. It can fly."
        answer_to(session, "Q", text, flags=flags, unsourced=["It can fly."])

        copied = get(f"/sessions/{session.id}").all("[data-copy]")[0].attributes["data-copy"]

        assert copied.split("\n")[0] == (
            "It is *red* [1]. *(⚠ The source does not speak of this.)* It can fly. *(no source)*"
        )

    @pytest.mark.parametrize("status", ["interrupted", "failed", "pending"])
    def test_an_answer_that_did_not_end_well_says_so(self, session, get, status):
        turn = session.begin("Q")
        if status != "pending":
            session.finish(replace(turn.answer, content="Half", status=MessageStatus(status)))

        page = get(f"/sessions/{session.id}")

        assert page.text(f".answer.is-{status} .note")
        assert bool(page.all("[data-regenerate]")) == (status != "pending")


class TestLongTranscripts:
    @pytest.fixture
    def long(self, session):
        for number in range(1, 46):
            answer_to(session, f"Question {number}?", f"Answer {number} [1].")
        return f"/sessions/{session.id}"

    def test_shows_the_newest_turns_and_leads_to_the_others(self, long, get):
        newest = get(long)
        middle = get(newest.link("Earlier turns"))
        oldest = get(middle.link("Earlier turns"))

        assert [page.text(".question") for page in (newest, middle, oldest)] == [
            "Question 26?",
            "Question 6?",
            "Question 1?",
        ]
        assert len(newest.all("[data-message]")) == 40
        assert len(oldest.all("[data-message]")) == 10
        assert middle.link("Newest turns") == long

    def test_can_be_read_from_the_first_turn_to_the_last(self, long, get):
        first = get(get(long).link("First turns"))
        second = get(first.link("Later turns"))
        third = get(second.link("Later turns"))

        asked = [q.text().strip() for page in (first, second, third) for q in page.all(".question")]
        assert asked == [f"Question {number}?" for number in range(1, 46)]
        assert not [a for a in third.all("a") if "Later turns" in a.text()]

    def test_an_answer_can_be_linked_to_whatever_comes_after_it(self, session, long, get):
        link = get(f"{long}?at=12").all("#m13 [data-link]")[0].attributes["href"]

        assert link.endswith("#m13")
        assert get(link).text("#m13 .prose") == "Answer 7 [1]."

    def test_shows_the_turns_around_a_message(self, long, get):
        page = get(f"{long}?at=12#m12")

        assert page.text("#m12") == "Question 7?"

    @pytest.mark.parametrize(
        "query", ["before=x", "at=-1", "at=²", "before=99999999999", "after=-2"]
    )
    def test_refuses_what_is_no_number(self, long, get, query):
        page = get(f"{long}?{query}")

        assert page.status == 400
        assert "whole number" in page.text()

    def test_says_what_became_of_summarised_turns(self, session, long, get):
        report = replace(
            REPORT,
            names_required=2,
            names_kept=1,
            recallable_names=("Höra",),
            listed_citations=(2,),
        )
        summary = Summary(
            0,
            30,
            "Quoted:\nThe Aero 5 weighs 120 g [1].",
            (1,),
            ("Aero 5", "Höra"),
            report,
            tokens=8,
            lines=(line("The Aero 5 weighs 120 g [1].", 13),),
        )
        session.add_summary(summary, epoch=session.epoch())

        page = get(long)
        opened = get(page.link("summarised"))

        said = "15 turns summarised: 1 of 1 citations, 1 of 2 products"
        assert said in page.text(".kept")
        assert opened.all(".summary a.cite")[0].attributes["href"].endswith("/sources/1#passage")
        assert "Turns 1–15" in opened.text(".summary")
        assert opened.link("Turn 7").endswith("?at=13#m13")
        assert "Word for word from the conversation" in opened.text(".summary")
        assert "lost: 0" in opened.text(".summary")

    def test_a_line_of_a_summary_is_corrected_and_removed(self, session, long, get, post):
        text = "The Aero 5 weighs 120 g [1]."
        summary = Summary(0, 30, text, (1,), (), REPORT, tokens=8, lines=(line(text, 13),))
        session.add_summary(summary, epoch=session.epoch())
        url = f"/sessions/{session.id}/summaries/correct"

        post(url, line=text, text="The scale was broken.")
        assert "The scale was broken." in get(f"/sessions/{session.id}/summaries").text(".summary")
        post(url, line="The scale was broken.", remove="1")
        shown = session.summaries()[0]

        assert not any("broken" in each.text or "120 g" in each.text for each in shown.lines)
        assert post(url, line="Nothing of the kind.", text="x").status == 404

    def test_a_summary_shows_the_verdict_of_what_it_quotes(self, session, get):
        text = "Sure. It weighs 9 g [1]. It is grey [2]."
        flags = [("[1]", Verdict.CONTRADICTED, False), ("[2]", SUPPORTED, False)]
        answer_to(session, "Q", text, flags=flags)
        quoted = text.removeprefix("Sure. ")
        summary = Summary(
            0, 2, f"Quoted:\n- {quoted}", (1, 2), (), REPORT, tokens=8, lines=(line(quoted, 1),),
        )  # fmt: skip
        session.add_summary(summary, epoch=session.epoch())

        page = get(f"/sessions/{session.id}/summaries")

        assert page.text(".summary .cite.is-warned") == "[1]"
        assert page.text(".summary .cite.is-supported") == "[2]"
        assert "9 g [1]. Warning: The source says something else. It is" in page.text(".summary")

    def test_summarises_turns_on_request(self, session, long, get, post):
        response = post(f"{long}/summaries", **{"from": "2", "to": "4"})

        page = get(response.location)
        assert [(s.start, s.end) for s in session.requested_summaries()] == [(2, 8)]
        assert "Turns 2–4" in page.text(".summary")

    @pytest.mark.parametrize(("first", "last"), [("0", "3"), ("4", "2"), ("1", "999"), ("", "2")])
    def test_refuses_turns_that_are_not_there(self, long, post, first, last):
        page = post(f"{long}/summaries", **{"from": first, "to": last})

        assert page.status == 400
        assert "between 1 and 45" in page.text("[role=alert]")

    def test_compacts_and_forgets_on_request(self, session, long, get, post):
        summary = Summary(0, 30, "It weighs 120 g [1].", (1,), (), REPORT, tokens=8)
        session.add_summary(summary, epoch=session.epoch())

        assert post(f"{long}/compact").status == 303
        assert post(f"{long}/forget").status == 303
        assert "Nothing is summarised" in get(f"{long}/summaries").text()


class TestAVeryLongOne:
    def test_is_opened_with_no_more_work_than_a_short_one(self, application, get):
        def opened(turns):
            session = application.store.create("local")
            for number in range(turns):
                turn = session.begin(f"Question {number}?")
                done = replace(turn.answer, content="Yes.", status=MessageStatus.COMPLETE)
                session.finish(done)
            statements = []

            def note(_connection, _cursor, statement, *_rest):
                statements.append(statement)

            event.listen(application.engine, "before_cursor_execute", note)
            page = get(f"/sessions/{session.id}")
            event.remove(application.engine, "before_cursor_execute", note)
            return len(statements), len(page.all(".question"))

        assert opened(80) == opened(21)
