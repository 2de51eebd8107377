"""The pages without scripts: plain forms, from the question to the evidence."""

import re
from dataclasses import replace
from io import BytesIO

import pytest
from selectolax.lexbor import LexborHTMLParser

from rag.errors import ModelUnavailable
from rag.records import JobState, MessageStatus, Summary
from rag.web import create_app
from rag.web.page_documents import size
from tests.browser.paged_application import (
    SUPPORTED,
    UNSUPPORTED,
    PagedApplication,
    answer_to,
)
from tests.web.fake_application import REPORT

HTML = {"Accept": "text/html,application/xhtml+xml"}
SCRIPT = "<script>alert('question')</script>"


@pytest.fixture
def application(settings, engine):
    return PagedApplication(settings, engine)


@pytest.fixture
def session(application):
    handle = application.store.create("local")
    handle.register(application.retriever.hits)
    return handle


class Page:
    """A response as a reader sees it."""

    def __init__(self, response):
        self.status = response.status_code
        self.location = response.headers.get("Location", "")
        self.html = response.get_data(as_text=True)
        self.tree = LexborHTMLParser(self.html)

    def all(self, selector):
        return self.tree.css(selector)

    def text(self, selector="main"):
        found = self.tree.css_first(selector)
        return " ".join(found.text().split()) if found else None

    def link(self, words):
        return next(a.attributes["href"] for a in self.all("a") if words in a.text())


@pytest.fixture
def get(client):
    return lambda url: Page(client.get(url, headers=HTML))


@pytest.fixture
def post(client):
    return lambda url, **form: Page(client.post(url, data=form, headers=HTML))


@pytest.fixture
def asked(post):
    """The path of a conversation with one answer."""
    return post("/ask", content="How heavy is it?").location.partition("#")[0]


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


class TestNewConversation:
    def test_offers_questions_made_from_the_library(self, application, get):
        text = "Use a dry cloth. " * 8
        asking = [("2026-01-01", text), ("How do I clean it without water?", text)]
        plain = [("2.6.0", text), ("CABLES", text), ("Why?", text), ("Storing", text)]
        application.add("faq.md", "Questions", asking, ["dry"] * 2)
        application.add("care.md", "Care guide", plain, ["dry"] * 4)

        starters = [button.text().strip() for button in get("/").all(".starters button")]

        assert starters == [
            "How do I clean it without water?",
            "What does “Care guide” say about “Storing”?",
            "What does “Aero 5 manual” say about “Weight”?",
        ]

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
            unsupported=["It can fly."],
        )

        page = get(f"/sessions/{session.id}")

        assert page.text(".cite.is-unsupported") == "[1]"
        assert "may not support" in page.text(".flag.is-unsupported")
        assert page.text(".cite.is-attributed") == "[2]"
        assert "Dotted numbers" in page.text(".answer")
        assert page.text(".prose .unsupported") == "It can fly."

    def test_a_refusal_looks_like_one(self, session, get):
        answer_to(session, "Q", "The documents do not say.", declined=True)

        assert "Not in the documents" in get(f"/sessions/{session.id}").text(".is-declined")

    def test_a_follow_up_says_what_was_searched_for_and_lets_edit_it(self, session, get):
        answer_to(session, "And it?", "Yes.", resolved_query="And the Aero 5?", is_followup=True)

        page = get(f"/sessions/{session.id}")

        assert "Searched for: And the Aero 5?" in page.text(".searched")
        assert get(page.link("Edit")).all("textarea")[0].text() == "And the Aero 5?"

    def test_a_resolved_question_that_is_the_same_is_not_repeated(self, session, get):
        answer_to(session, "And it?", "Yes.", resolved_query="And it?", is_followup=True)

        assert not get(f"/sessions/{session.id}").all(".searched")

    def test_copies_with_its_footnotes(self, asked, get):
        copied = get(asked).all("[data-copy]")[0].attributes["data-copy"]

        assert copied == "It weighs 120 g [1].\n\n[1] Aero 5 manual, § Weight (manual.md)"

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
        assert middle.link("newest turns") == long

    def test_shows_the_turns_around_a_message(self, long, get):
        page = get(f"{long}?at=12#m12")

        assert page.text("#m12") == "Question 7?"

    @pytest.mark.parametrize("query", ["before=x", "at=-1", "at=²", "before=99999999999"])
    def test_refuses_what_is_no_number(self, long, get, query):
        page = get(f"{long}?{query}")

        assert page.status == 400
        assert "whole number" in page.text()

    def test_says_what_became_of_summarised_turns(self, session, long, get):
        report = replace(REPORT, archived_names=("Höra",), archived_citations=(2,))
        summary = Summary(0, 30, "It weighs 120 g [1].", (1,), ("Aero 5", "Höra"), report, tokens=8)
        session.add_summary(summary, epoch=session.epoch())

        page = get(long)
        opened = get(page.link("summarised"))

        assert "1 of 1 citations, 1 of 2 products kept" in page.text(".kept")
        assert opened.all(".summary a.cite")[0].attributes["href"].endswith("/sources/1")
        assert "Turns 1–15" in opened.text(".summary")
        assert opened.all(".summary .quiet a.cite")[0].attributes["href"].endswith("/sources/2")

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


class TestSources:
    def test_lists_all_numbers(self, asked, get):
        page = get(f"{asked}/sources")

        assert [each.text().strip() for each in page.all("main .source-n")] == ["[1]", "[2]", "[3]"]

    def test_the_script_of_a_document_is_shown_as_text(self, asked, get):
        page = get(f"{asked}/sources/2")

        assert page.text(".document-text mark") == "The key is <script>alert('document')</script>"
        assert all("src" in script.attributes for script in page.all("script"))

    def test_a_row_of_a_table_is_marked_in_its_table(self, asked, get):
        page = get(f"{asked}/sources/3")

        assert page.text("tr.is-marked") == "RESET 10" or page.text("tr.is-marked") == "RESET10"
        assert [cell.text() for cell in page.all(".document-text th")] == ["Key", "Seconds"]

    def test_a_long_section_is_cut_between_words_around_the_passage(
        self, application, session, get
    ):
        text = f"{'before ' * 900}The needle is sharp. {'after ' * 900}"
        session.register(
            application.add("hay.md", "Hay", [("Stack", text)], ["The needle is sharp."])
        )

        page = get(f"/sessions/{session.id}/sources/4")

        shown = page.text(".document-text p")
        assert page.text(".document-text mark") == "The needle is sharp."
        assert shown.startswith("… before before")
        assert shown.endswith("after after …")
        assert len(shown) < 4000

    def test_a_deleted_document_leaves_its_passage(self, application, asked, get):
        application.documents.delete(application.retriever.hits[0].chunk.document_id)

        page = get(f"{asked}/sources/1")

        assert "deleted since" in page.text(".badge")
        assert page.text(".document-text mark") == "The Aero 5 weighs 120 g."
        assert not [a for a in page.all("a") if "Read the document" in a.text()]

    def test_a_changed_document_leaves_its_passage(self, application, asked, get):
        application.add("manual.md", "Aero 5 manual", [("Weight", "It weighs 130 g.")], ["130 g"])
        hits = application.retriever.hits
        application.documents.replace(
            application.documents.document(hits[0].chunk.document_id), [], []
        )

        page = get(f"{asked}/sources/1")

        assert "changed since" in page.text(".badge")
        assert page.text(".document-text mark") == "The Aero 5 weighs 120 g."

    def test_an_unknown_number_is_not_found(self, asked, get):
        page = get(f"{asked}/sources/99")

        assert page.status == 404
        assert "no source [99]" in page.text()


class TestSessions:
    def test_renames_and_configures(self, application, asked, get, post):
        response = post(
            f"{asked}/settings",
            title="Weights",
            compression_strategy="sliding_window",
            recent_message_count="6",
            max_tokens="4000",
        )

        session = application.store.sessions("local")[0]
        assert response.status == 303
        assert session.title == "Weights"
        assert (session.config.compression_strategy, session.config.enabled) == (
            "sliding_window",
            False,
        )
        assert (session.config.max_tokens, session.config.recent_message_count) == (4000, 6)
        page = get(f"{asked}/settings")
        checked = [i.attributes["value"] for i in page.all("[type=radio][checked]")]
        assert checked == ["sliding_window"]

    @pytest.mark.parametrize(
        ("field", "value", "said"),
        [
            pytest.param("title", " ", "needs a name", id="no name"),
            pytest.param("title", "x" * 301, "301 characters", id="a long name"),
            pytest.param("max_tokens", "3", "max_tokens", id="a small window"),
            pytest.param("max_tokens", "many", "whole number", id="a window in words"),
            pytest.param("compression_strategy", "none", "compression_strategy", id="a strategy"),
        ],
    )
    def test_refuses_settings_with_the_reason(self, asked, post, field, value, said):
        form = {"title": "T", "compression_strategy": "smart", "recent_message_count": "10"}

        page = post(f"{asked}/settings", **(form | {field: value}))

        assert page.status == 400
        assert said in page.text("[role=alert]")

    def test_deletes_after_asking(self, application, asked, get, post):
        page = get(f"{asked}/delete")
        assert "Delete this conversation?" in page.text()
        assert application.store.sessions("local")

        assert post(f"{asked}/delete").location == "/sessions"
        assert application.store.sessions("local") == []
        assert get(asked).status == 404

    def test_lists_all_with_what_can_be_done(self, asked, get):
        page = get("/sessions")

        assert "How heavy is it?" in page.text()
        assert page.link("Export as Markdown") == f"/api/v1{asked}/export?format=markdown"
        assert get(page.link("Export as JSON")).status == 200

    def test_goes_through_a_long_list_page_by_page(self, application, get):
        for number in range(60):
            application.store.create("local", title=f"Talk {number}")

        first = get("/sessions")
        second = get(first.link("Older"))

        assert len(first.all(".list li")) == 50
        assert len(second.all(".list li")) == 10
        assert len(first.all(".sessions li")) == 30

    def test_finds_words_and_leads_to_the_turn(self, session, get):
        answer_to(session, "Where?", f"In the {'very ' * 40}blue <b>room</b> {'far ' * 60}away.")

        page = get("/search?q=BLUE+<b>room")

        assert page.text(".found mark") == "blue <b>room"
        assert page.link("Turn 1") == f"/sessions/{session.id}?at=1#m1"
        assert get(page.link("Turn 1")).all("#m1")

    def test_finds_in_one_session_only(self, application, session, asked, get):
        answer_to(session, "How heavy is a feather?", "Light.")

        page = get(f"/sessions/{session.id}/search?q=heavy")

        assert len(page.all(".found li")) == 1

    def test_says_when_nothing_is_found(self, session, get):
        page = get(f"/sessions/{session.id}/search?q=nowhere")

        assert "0 messages" in page.text()
        assert page.link("Search all") == "/search?q=nowhere"


class TestLibrary:
    def upload(self, client, *files):
        data = {"file": [(BytesIO(content), name) for name, content in files]}
        return Page(client.post("/documents", data=data, headers=HTML))

    def test_lists_documents(self, get):
        page = get("/documents")

        assert "1 in the library" in page.text()
        assert "manual.md · Markdown · 1.4 kB · 3 passages" in page.text(".list")

    def test_takes_files_and_shows_them_on_their_way(self, application, client, get):
        response = self.upload(client, ("new.md", b"# New"), ("more.md", b"# More"))

        assert (response.status, response.location) == (303, "/documents")
        assert application.jobs.submitted == {"new.md": b"# New", "more.md": b"# More"}
        page = get("/documents")
        assert [each.text() for each in page.all(".job-name")] == ["new.md", "more.md"]
        assert 'http-equiv="refresh"' in page.html

    def test_says_by_name_what_was_refused(self, application, client):
        page = self.upload(client, ("../secret.md", b"x"), ("good.md", b"# Good"))

        assert page.status == 200
        assert "../secret.md" in page.text("#refused")
        assert "leads out of the library" in page.text("#refused")
        assert list(application.jobs.submitted) == ["good.md"]

    def test_asks_for_a_file_when_none_came(self, client):
        page = Page(client.post("/documents", data={"file": (BytesIO(b""), "")}, headers=HTML))

        assert page.status == 422
        assert "Choose one or more files" in page.text("[role=alert]")

    def test_says_why_a_file_was_not_added(self, application, get):
        job = application.jobs.add("ingest", "broken.pdf")
        now = application.documents.documents()[0].ingested_at
        application.jobs.known[job.id] = replace(
            job, state=JobState.FAILED, error="broken.pdf: it is encrypted.", updated_at=now
        )

        page = get("/documents")

        assert page.text(".problems") == "broken.pdf it is encrypted."

    @pytest.mark.parametrize(
        ("state", "done", "total", "said"),
        [
            pytest.param(JobState.QUEUED, 0, 0, "waiting", id="waiting"),
            pytest.param(JobState.RUNNING, 0, 0, "reading", id="reading"),
            pytest.param(JobState.RUNNING, 3, 9, "3 of 9 passages", id="embedding"),
        ],
    )
    def test_shows_how_far_a_file_is(self, application, get, state, done, total, said):
        job = application.jobs.add("ingest", "big.pdf")
        application.jobs.known[job.id] = replace(job, state=state, done=done, total=total)

        assert said in get("/documents").text(".jobs")

    def test_deletes_after_asking(self, application, get, post):
        document = application.documents.documents()[0]
        page = get(f"/documents/{document.id}/delete")
        assert "Delete this document?" in page.text()

        assert post(f"/documents/{document.id}/delete").location == "/documents"
        assert application.documents.documents() == []
        assert "library is empty" in get("/documents").text()

    def test_shows_a_document_as_it_was_read(self, application, get):
        document = application.documents.documents()[0]

        page = get(f"/documents/{document.id}?at=1#s1")

        assert "weighs 120 g" in page.text("#s0")
        assert "<script>" in page.text("#s1")
        assert get(f"/documents/{document.id}?at=99").status == 404

    def test_a_document_without_text_says_so(self, application, get):
        application.add("empty.md", "Empty", [], [])
        empty = next(each for each in application.documents.documents() if each.title == "Empty")

        assert "No text could be read" in get(f"/documents/{empty.id}").text()

    @pytest.mark.parametrize(
        ("count", "said"),
        [(999, "999 bytes"), (1400, "1.4 kB"), (53_000_000, "53 MB"), (2_500_000_000, "2.5 GB")],
    )
    def test_sizes_are_said_as_people_read_them(self, count, said):
        assert size(count) == said

    def test_filters_by_name(self, application, get):
        for number in range(12):
            application.add(f"part-{number}.md", f"Part {number}", [("H", "text")], ["text"])

        assert len(get("/documents?q=part+1").all(".list li")) == 3  # 1, 10 and 11


class TestErrors:
    @pytest.mark.parametrize(
        "url", ["/nowhere", "/sessions/unknown", "/documents/unknown", "/sessions/a%20b/sources"]
    )
    def test_what_is_not_there_is_a_page(self, get, url):
        page = get(url)

        assert page.status == 404
        assert page.text("h1") == "There is nothing here"
        assert page.link("Ask a question") == "/"

    def test_too_large_an_upload_is_a_page(self, app, client):
        app.config["MAX_CONTENT_LENGTH"] = 100

        response = client.post(
            "/documents", data={"file": (BytesIO(b"x" * 500), "a.md")}, headers=HTML
        )

        assert response.status_code == 413
        assert "too large" in Page(response).text("h1")

    def test_a_surprise_is_a_page_without_its_reasons(self, app, application, client):
        app.config["PROPAGATE_EXCEPTIONS"] = False
        application.assistant.surprise = RuntimeError("secret password")

        response = client.post("/ask", data={"content": "Q?"}, headers=HTML)

        assert response.status_code == 500
        assert "secret" not in response.get_data(as_text=True)
        assert Page(response).text("h1") == "Something went wrong"


class TestOwners:
    @pytest.fixture
    def browser(self, token_settings, engine):
        return create_app(PagedApplication(token_settings, engine)).test_client()

    def log_in(self, browser, token):
        return browser.post("/login", data={"token": token, "next": "/documents"}, headers=HTML)

    def test_a_stranger_is_led_to_the_login(self, browser):
        page = Page(browser.get("/documents", headers=HTML))

        assert (page.status, page.location) == (303, "/login?next=/documents")

    def test_a_wrong_token_is_refused_in_the_form(self, browser):
        page = Page(self.log_in(browser, "wrong"))

        assert page.status == 401
        assert "not known" in page.text("[role=alert]")
        assert page.all("[name=next]")[0].attributes["value"] == "/documents"

    def test_every_form_of_a_logged_in_browser_carries_the_token_of_its_page(self, browser):
        assert self.log_in(browser, "token-of-anna").location == "/documents"
        refused = browser.post("/ask", data={"content": "Q?"}, headers=HTML)
        pages = ["/", "/documents"]
        token = Page(browser.get("/", headers=HTML)).all("[name=csrf_token]")[0]
        form = {"content": "Q?", "csrf_token": token.attributes["value"]}
        conversation = browser.post("/ask", data=form, headers=HTML).location.partition("#")[0]
        pages += [conversation] + [
            f"{conversation}/{part}" for part in ("settings", "delete", "summaries")
        ]

        assert refused.status_code == 403
        for url in pages:
            page = Page(browser.get(url, headers=HTML))
            for form in page.all("form[method=post]"):
                assert form.css_first("[name=csrf_token]").attributes["value"], (url, form.html)

    def test_another_owner_finds_nothing(self, browser):
        self.log_in(browser, "token-of-anna")
        token = re.search(r'name="csrf-token" content="(\w+)"', browser.get("/").text)[1]
        form = {"content": "Secret plan?", "csrf_token": token}
        conversation = browser.post("/ask", data=form).location.partition("#")[0]
        browser.post("/logout", data={"csrf_token": token})
        self.log_in(browser, "token-of-ben")

        for part in ("", "/sources", "/sources/1", "/settings", "/summaries", "/delete", "/search"):
            assert browser.get(conversation + part, headers=HTML).status_code == 404
        assert "Secret plan" not in browser.get("/search?q=secret", headers=HTML).text
