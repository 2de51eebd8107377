"""Sources, sessions and search without scripts."""

from dataclasses import replace
from hashlib import sha256

import pytest

from rag.records import EVERYTHING, Section
from rag.web import edition
from rag.wiring.components import package_folder
from tests.browser.paged_application import UNSUPPORTED, answer_to


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

    def test_the_sentence_that_an_answer_cites_is_marked_in_the_passage(
        self, application, session, get
    ):
        text = "It is grey. The lid has seven screws. Its fan turns at 900 rpm."
        session.register(application.add("fan.md", "Fan", [("Build", text)], [text]))
        answer_to(session, "Q?", "The fan turns at 900 rpm [4]. Seven screws hold the lid [4].")

        links = [a.attributes["href"] for a in get(f"/sessions/{session.id}").all(".prose .cite")]
        marked = [[mark.text() for mark in get(link).all("mark")] for link in links]
        both = get(f"/sessions/{session.id}/sources/4?m=1")
        none = get(f"/sessions/{session.id}/sources/4?m=0")

        assert marked == [["Its fan turns at 900 rpm."], ["The lid has seven screws."]]
        assert len(both.all("mark")) == 2
        assert none.text("mark") == text

    def test_what_stands_beside_the_passage_is_marked_where_it_stands(
        self, application, session, get
    ):
        text = "The budget is 250 W. Revision B states a budget of 370 W."
        session.register(
            application.add("poe.md", "PoE", [("Budget", text)], ["The budget is 250 W."])
        )
        answer_to(session, "Q?", "Revision B states 370 W [4].")

        page = get(get(f"/sessions/{session.id}").all(".prose .cite")[0].attributes["href"])

        assert page.text("mark") == "Revision B states a budget of 370 W."
        assert page.text(".is-around") == "The budget is 250 W."

    def test_a_deleted_document_leaves_its_passage(self, application, asked, get):
        application.documents.delete(application.retriever.hits[0].chunk.document_id)

        page = get(f"{asked}/sources/1")

        assert "not there any more" in page.text(".badge")
        assert page.text(".document-text mark") == "The Aero 5 weighs 120 g."
        assert not [a for a in page.all("a") if "Read the document" in a.text()]

    def test_a_changed_document_leaves_its_passage(self, application, asked, get):
        document_id = application.retriever.hits[0].chunk.document_id
        document = application.documents.document(document_id, EVERYTHING)
        changed = replace(document, content_hash=sha256(b"It weighs 130 g.").hexdigest())
        section = Section(0, ("Weight",), "§ Weight", "It weighs 130 g.")
        application.documents.replace(changed, [section], [])

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


class TestPrint:
    def test_has_every_turn_and_each_cited_source_once(self, session, get):
        for number in range(30):
            answer_to(session, f"Question {number} <b>?", f"It weighs {number} g [1].")

        page = get(f"/sessions/{session.id}/print")

        assert len(page.all(".asked")) == len(page.all(".answered")) == 30
        assert page.text(".asked") == "Question 0 <b>?"
        assert [each.text().strip() for each in page.all(".source-n")] == ["[1]"]
        assert "Aero 5 manual, § Weight manual.md" in page.text(".printed-sources")

    def test_is_sent_while_it_is_rendered(self, client, session):
        for number in range(200):
            answer_to(session, f"Question {number}?", f"It weighs {number} g [1].")

        pieces = iter(client.get(f"/sessions/{session.id}/print", buffered=False).response)
        first, rest = next(pieces), b"".join(pieces)

        assert b"Question 0?" in first
        assert b"Question 199?" not in first
        assert b"Question 199?" in rest

    def test_says_what_is_wrong_with_an_answer(self, session, get):
        text = "It weighs 9 g [1]. It can fly."
        flags = [("[1]", UNSUPPORTED, False)]
        answer_to(session, "Q", text, flags=flags, unsourced=["It can fly."])

        shown = get(f"/sessions/{session.id}/print").text(".answered")

        assert "It weighs 9 g [1]. Warning: The source does not speak of this." in shown
        assert "It can fly. no source" in shown


class TestFilesOfThePages:
    def test_are_kept_by_browsers_until_they_are_other_files(self, client, get):
        sheet = get("/").all("link[rel=stylesheet]")[0].attributes["href"]

        response = client.get(sheet)

        assert response.status_code == 200
        assert response.cache_control.max_age == 365 * 24 * 3600

    def test_have_another_address_when_one_changes(self, tmp_path):
        (tmp_path / "a.css").write_text("one")
        before = edition(tmp_path)
        (tmp_path / "a.css").write_text("two")

        assert edition(tmp_path) != before

    def test_are_all_announced_to_the_browser_at_once(self, get):
        announced = {
            link.attributes["href"].rpartition("/")[2]
            for link in get("/").all("link[rel=modulepreload]")
        }

        assert announced == {each.name for each in package_folder("static").glob("*.js")} - {
            "app.js"
        }


class TestWhatIsAway:
    @pytest.mark.parametrize(
        ("missing", "told"),
        [
            ((), []),
            (("index",), ["Search by meaning is away"]),
            (("index", "model"), ["Search by meaning is away"]),
            (("queue", "storage"), ["New files wait", "The disk is full"]),
        ],
    )
    def test_is_said_in_a_line_as_it_was_last_seen(self, application, get, missing, told):
        application.last_checks = dict.fromkeys(
            ("database", "model", "index", "queue", "storage"), True
        )
        application.last_checks |= dict.fromkeys(missing, False)
        application.tried.set()

        for path in ("/", "/documents"):
            lines = [each.text() for each in get(path).all(".away .note")]
            assert len(lines) == len(told)
            assert all(map(str.startswith, lines, told))

    def test_is_not_said_before_anybody_looked(self, application, get):
        application.last_checks = {"index": False}

        assert get("/").all(".away") == []


class TestVersions:
    @pytest.fixture
    def edited(self, asked, post):
        """A conversation of two questions, of which the second was edited: the other version."""
        post(f"{asked}/ask", content="And the Aero 5?")
        return post(f"{asked}/ask", content="And the Lumen?", edit=2).location.partition("#")[0]

    def test_the_form_of_a_question_that_is_edited_holds_it(self, asked, get):
        link = get(asked).all(".question a")[0].attributes["href"]
        page = get(link.partition("#")[0])

        assert page.text("#question").strip() == "How heavy is it?"
        assert page.all("[name=edit]")[0].attributes["value"] == "0"
        assert "this one stays" in page.text(".composer .note")

    def test_the_answer_is_another_version_and_the_first_stays(self, asked, edited, get):
        assert edited != asked
        questions = [[q.text() for q in get(url).all(".question p")] for url in (asked, edited)]
        assert questions[0][:1] == questions[1][:1]
        assert questions[0][1].strip() == "And the Aero 5?"
        assert questions[1][1].strip() == "And the Lumen?"

    def test_arrows_lead_from_one_version_to_the_other(self, asked, edited, get):
        page = get(edited)

        assert page.text(".versions [aria-current]") == "2 of 2"
        (back,) = page.all(".versions a")
        first = get(back.attributes["href"].partition("#")[0])
        assert first.text(".versions [aria-current]") == "1 of 2"
        assert first.all(".versions a")[0].attributes["href"].startswith(edited)

    def test_stand_in_the_list_once(self, edited, get):
        links = [a.attributes["href"] for a in get("/sessions").all("main a")]

        assert edited in links
        assert {link.split("/")[2] for link in links if link.startswith("/sessions/")} == {
            edited.split("/")[2]
        }

    def test_are_deleted_alone_or_together(self, asked, edited, get, post, application):
        assert "2 versions" in get(f"{edited}/delete").text("main")
        post(f"{edited}/delete")
        assert len(application.store.sessions("local")) == 1
        other = post(f"{asked}/ask", content="Other?", edit=0).location.partition("#")[0]
        post(f"{other}/delete", all="1")
        assert application.store.sessions("local") == []

    def test_a_question_that_cannot_be_asked_leaves_no_version(self, asked, post, application):
        page = post(f"{asked}/ask", content=" ", edit=0)

        assert page.all("[name=edit]")[0].attributes["value"] == "0"
        assert len(application.store.sessions("local")) == 1
