"""The library, errors and owners without scripts."""

from dataclasses import replace
from io import BytesIO

import pytest

from rag.documents.reports import size_in_words
from rag.errors import ModelUnavailable
from rag.records import EVERYTHING, JobState, ReadingReport
from tests.applications import app_of
from tests.browser.paged_application import (
    HTML,
    Page,
    PagedApplication,
)


class TestLibrary:
    def upload(self, client, *files):
        data = {"file": [(BytesIO(content), name) for name, content in files]}
        return Page(client.post("/documents", data=data, headers=HTML))

    def test_lists_documents(self, get):
        page = get("/documents")

        assert "1 in the library" in page.text()
        assert "manual.md · Markdown · 1.4 kB · 3 passages" in page.text(".list")

    @pytest.mark.parametrize("path", ["/", "/documents", "/documents?q=manual"])
    def test_is_not_read_whole_to_show_a_page(self, application, get, monkeypatch, path):
        monkeypatch.setattr(application.documents, "documents", None)

        assert get(path).status == 200

    def test_counts_what_can_be_filtered_by_only_for_those_who_filter(self, get):
        link = next(each for each in get("/documents").all("a") if each.text() == "Filter")

        assert get(link.attributes["href"]).all('select[name="type"]')

    def test_takes_files_and_shows_them_on_their_way(self, application, client, get):
        response = self.upload(client, ("new.md", b"# New"), ("more.md", b"# More"))

        assert (response.status, response.location) == (303, "/documents")
        assert application.jobs.submitted == {"new.md": b"# New", "more.md": b"# More"}
        page = get("/documents")
        assert [each.text() for each in page.all(".job-name")] == ["new.md", "more.md"]
        assert 'http-equiv="refresh"' in page.html

    def test_takes_a_pasted_text_as_a_document(self, application, post):
        response = post("/documents/text", title="Notes: a/b", content="It hums.\r\nA lot.")

        assert (response.status, response.location) == (303, "/documents")
        assert application.jobs.submitted == {
            "pasted/Notes- a-b.md": b"# Notes: a/b\n\nIt hums.\nA lot."
        }

    def test_a_pasted_text_keeps_its_own_heading(self, application, post):
        post("/documents/text", title="Notes", content="# Hum\n\nIt hums.")

        assert list(application.jobs.submitted.values()) == [b"# Hum\n\nIt hums."]

    def test_a_pasted_text_replaces_no_other_of_its_title(self, application, post):
        there = application.documents.documents(EVERYTHING)[0]
        application.documents.replace(replace(there, id="f" * 32, name="pasted/Notes.md"), [], [])

        page = post("/documents/text", title="Notes", content="It hums.")

        assert page.status == 409
        assert "called Notes already" in page.text("[role=alert]")
        assert page.all("textarea[name=content]")[0].text() == "It hums."
        assert application.jobs.submitted == {}

    @pytest.mark.parametrize(
        ("title", "content", "said"),
        [
            pytest.param("", "It hums.", "needs a title", id="no title"),
            pytest.param("Notes", " \n", "needs a title and some words", id="no words"),
            pytest.param("Notes", "x" * 100_001, "100,001 characters", id="too long"),
            pytest.param("Notes\u200b", "It hums.", "printable", id="a name that cannot be seen"),
        ],
    )
    def test_a_text_that_is_not_taken_is_kept_in_its_form(
        self, application, post, title, content, said
    ):
        page = post("/documents/text", title=title, content=content)

        assert page.status in (400, 413, 422)
        assert said in page.text("[role=alert]")
        assert "open" in page.all("details.paste")[0].attributes
        assert page.all("textarea[name=content]")[0].text() == content.strip()
        assert application.jobs.submitted == {}

    def test_says_by_name_what_was_refused(self, application, client):
        page = self.upload(client, ("../secret.md", b"x"), ("good.md", b"# Good"))

        assert page.status == 200
        assert "../secret.md" in page.text(".problems[role=alert]")
        assert "leads out of the library" in page.text(".problems[role=alert]")
        assert list(application.jobs.submitted) == ["good.md"]

    def test_of_which_none_was_taken_is_no_success(self, client):
        page = self.upload(client, ("../secret.md", b"x"))

        assert page.status == 422
        assert "leads out of the library" in page.text(".problems[role=alert]")

    def test_asks_for_a_file_when_none_came(self, client):
        page = Page(client.post("/documents", data={"file": (BytesIO(b""), "")}, headers=HTML))

        assert page.status == 422
        assert "Choose one or more files" in page.text("[role=alert]")

    def test_says_why_a_file_was_not_added(self, application, get):
        job = application.jobs.add("ingest", "broken.pdf")
        now = application.documents.documents(EVERYTHING)[0].ingested_at
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

    def test_shows_many_files_in_one_bar(self, application, get):
        jobs = [application.jobs.add("ingest", f"{n}.md") for n in range(500)]
        for job in jobs[:37]:
            application.jobs.known[job.id] = replace(job, state=JobState.DONE)
        found = get("/documents")

        assert found.text(".jobs").split()[-4:] == ["37", "of", "500", "read"]
        assert len(found.all(".jobs progress")) == 1

    def test_deletes_after_asking(self, application, get, post):
        document = application.documents.documents(EVERYTHING)[0]
        page = get(f"/documents/{document.id}/delete")
        assert "Delete this document?" in page.text()

        assert (
            post("/documents/chosen", act="delete", document=document.id).location == "/documents"
        )
        assert application.documents.documents(EVERYTHING) == []
        assert "library is empty" in get("/documents").text()

    def test_shows_a_document_as_it_was_read(self, application, get):
        document = application.documents.documents(EVERYTHING)[0]

        page = get(f"/documents/{document.id}?at=1#s1")

        assert "weighs 120 g" in page.text("#s0")
        assert "<script>" in page.text("#s1")
        assert get(f"/documents/{document.id}?at=99").status == 404

    def test_a_document_without_text_says_so(self, application, get):
        application.add("empty.md", "Empty", [], [])
        empty = next(
            each for each in application.documents.documents(EVERYTHING) if each.title == "Empty"
        )

        assert "No text could be read" in get(f"/documents/{empty.id}").text()

    @pytest.mark.parametrize(
        ("count", "said"),
        [(999, "999 bytes"), (1400, "1.4 kB"), (53_000_000, "53 MB"), (2_500_000_000, "2.5 GB")],
    )
    def test_sizes_are_said_as_people_read_them(self, count, said):
        assert size_in_words(count) == said

    def test_filters_by_name(self, application, get):
        for number in range(12):
            application.add(f"part-{number}.md", f"Part {number}", [("H", "text")], ["text"])

        assert len(get("/documents?q=part+1").all(".list li")) == 3  # 1, 10 and 11

    def test_searches_the_texts_and_leads_to_the_passage_in_its_document(self, get):
        page = get("/documents?q=grams:+weight")

        found = page.all(".passages li")[0]
        document = get(found.css_first("a").attributes["href"])
        assert found.css_first("mark").text() == "The Aero 5 weighs 120 g."
        assert document.text("#passage") == "The Aero 5 weighs 120 g."
        assert "None of them have" in page.text("[role=status]")
        assert len(page.all("#passage")) == 0

    def test_marks_what_newer_readers_refuse(self, application, get):
        document = application.documents.documents(EVERYTHING)[0]
        application.documents.note_refusal(document.id, f"{document.name}: it is encrypted.")

        entry = get("/documents").text(f"#document-{document.id} .quiet + .quiet")

        assert entry == "Read by older readers: newer ones refuse it. it is encrypted."

    def test_says_how_many_an_older_reader_read(self, application, get):
        application.add("b.md", "B", [("H", "The text of B.")], ["The text of B."])
        told = [get("/documents").text("[role=status]")]
        for document in application.documents.documents(EVERYTHING):
            older = replace(document, report=ReadingReport(), content_hash="0" * 64)
            application.documents.replace(older, [], [])
            told.append(get("/documents").text("[role=status]"))

        assert not told[0]
        assert told[1].startswith("1 document (1.4 kB) was read by an older reader.")
        assert told[2].startswith("2 documents (2.8 kB) were read by an older reader.")

    def test_a_passage_of_another_document_is_not_marked(self, application, get):
        other = application.add("b.md", "B", [("H", "The text of B.")], ["The text of B."])[0].chunk
        first = application.retriever.hits[0].chunk

        page = get(f"/documents/{other.document_id}?passage={first.id}")

        assert page.status == 200
        assert not page.all("mark")

    def test_says_when_the_texts_cannot_be_searched(self, application, get, monkeypatch):
        def unreachable(*_, **__):
            raise ModelUnavailable("No embedding server answers.")

        monkeypatch.setattr(application.retriever, "search", unreachable)

        page = get("/documents?q=manual")

        assert "No embedding server answers." in page.text(".note")
        assert len(page.all(".list li")) == 1


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
        return app_of(PagedApplication(token_settings, engine)).test_client()

    def log_in(self, browser, token):
        return browser.post("/login", data={"token": token, "next": "/documents"}, headers=HTML)

    def test_a_wrong_token_is_refused_in_the_form(self, browser):
        page = Page(self.log_in(browser, "wrong"))

        assert page.status == 401
        assert "not known" in page.text("[role=alert]")
        assert page.all("[name=next]")[0].attributes["value"] == "/documents"
        assert browser.get_cookie("groundnote") is None

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
