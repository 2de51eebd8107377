"""C1 and C2 through the whole application: numbers that never change, and none that is invented."""

import json

import pytest

from rag.citations.markers import find_markers
from tests.acceptance.conftest import MANUAL, installed
from tests.openai_server import OpenAIServer, deltas, reply

WEIGHT = "How much does the Aero 5 weigh?"
BATTERY = "How long does the battery of the Aero 5 last?"
CHANGED = MANUAL.replace(b"120 g", b"125 g")


def asked(library):
    session_id = library.session()
    library.ask(session_id, WEIGHT)
    return session_id


def cited(library, session_id, words):
    """The number of the source that says these words."""
    sources = library.get(f"/sessions/{session_id}/sources")["sources"]
    return next(source["n"] for source in sources if words in source["text"])


class TestNumbers:
    def test_are_the_same_after_deleting_and_ingesting_again(self, library):
        session_id = asked(library)
        before = library.numbers(session_id)
        document = library.get("/documents")["documents"][0]["id"]

        library.client.delete(f"/api/v1/documents/{document}")
        library.add("manuals/aero.md", MANUAL)
        answer = library.ask(session_id, WEIGHT)

        assert library.numbers(session_id) == before
        assert {source["state"] for source in answer["sources"]} == {"current"}

    def test_of_changed_text_are_new_and_the_old_ones_stay(self, library):
        session_id = asked(library)
        before = library.numbers(session_id)

        library.add("manuals/aero.md", CHANGED)
        answer = library.ask(session_id, WEIGHT)

        after = library.numbers(session_id)
        assert before.items() < after.items()
        assert "125 g" in answer["content"]
        assert "120 g" not in answer["content"]

    def test_survive_a_restart(self, library):
        session_id = asked(library)
        before = library.numbers(session_id)
        said = library.get(f"/sessions/{session_id}/messages")["messages"]

        library.restart()
        library.ask(session_id, WEIGHT)

        assert library.numbers(session_id) == before
        assert library.get(f"/sessions/{session_id}/messages?end=2")["messages"] == said

    def test_survive_an_export_and_an_import_here_and_elsewhere(self, library, tmp_path):
        session_id = asked(library)
        library.ask(session_id, BATTERY)
        exported = library.get(f"/sessions/{session_id}/export?format=json")
        brought = {"messages": exported["messages"], "sources": exported["sources"]}

        with installed(tmp_path / "elsewhere") as elsewhere:
            for place, state in ((library, "current"), (elsewhere, "deleted")):
                copy = place.session()
                place.post(f"/sessions/{copy}/import", json=brought, status=201)
                again = place.get(f"/sessions/{copy}/export?format=json")

                assert place.numbers(copy) == library.numbers(session_id)
                for old, new in zip(exported["messages"], again["messages"], strict=True):
                    assert (new["role"], new["content"]) == (old["role"], old["content"])
                    assert positions(new) == positions(old)
                for old, new in zip(exported["sources"], again["sources"], strict=True):
                    assert new == old | {"state": state}

    def test_of_an_imported_session_go_on_where_it_ended(self, library):
        session_id = asked(library)
        exported = library.get(f"/sessions/{session_id}/export?format=json")
        brought = {"messages": exported["messages"], "sources": exported["sources"]}
        copy = library.session()
        library.post(f"/sessions/{copy}/import", json=brought, status=201)
        library.add("other.md", b"# Nova 7\n\nThe Nova 7 has a range of 400 metres.\n")

        library.ask(copy, "What range has the Nova 7?")

        before, after = library.numbers(session_id), library.numbers(copy)
        assert before.items() < after.items()
        assert sorted(after.values()) == list(range(1, len(after) + 1))


def positions(message):
    return [(each["n"], each["start"], each["end"]) for each in message["citations"]]


class TestEvidence:
    @pytest.mark.parametrize("state", ["deleted", "changed"])
    def test_opens_and_is_marked_after_its_document_went(self, library, state):
        session_id = asked(library)
        number = cited(library, session_id, "120 g")
        if state == "deleted":
            document = library.get("/documents")["documents"][0]["id"]
            library.client.delete(f"/api/v1/documents/{document}")
            assert not library.post("/search", json={"query": "weight"}).get_json()["hits"]
        else:
            library.add("manuals/aero.md", CHANGED)

        source = library.get(f"/sessions/{session_id}/sources/{number}")
        page = library.page(f"/sessions/{session_id}/sources/{number}")
        markdown = library.client.get(f"/api/v1/sessions/{session_id}/export").get_data(True)

        assert source["state"] == state
        assert "120 g" in source["text"]
        assert page.status_code == 200
        assert "120 g" in page.get_data(as_text=True)
        said = {"deleted": "not there any more", "changed": "changed since"}[state]
        assert said in page.get_data(as_text=True)
        assert "120 g" in markdown
        assert ("changed since" if state == "changed" else "no longer in the library") in markdown


class TestMarkersOfDocuments:
    HOSTILE = b"""# Test report

The Aero 5 weighs 120 g [7]. It was dropped twice [1, 9] and lasts 30 hours [2-4].
See also [12][13] and \xe3\x80\x905\xe3\x80\x91 on weight.
"""

    def test_never_become_citations_when_the_model_copies_all_it_is_shown(self, with_model):
        def copy(exchange):
            shown = "\n".join(message["content"] for message in exchange.body["messages"])
            reply(shown[:6000])(exchange)

        with OpenAIServer(copy) as server:
            library = with_model(server)
            library.add("report.md", self.HOSTILE)
            session_id = library.session()
            answer = library.ask(session_id, "What does the test report say of the weight?")

        registered = set(library.numbers(session_id).values())
        source = next(each for each in answer["sources"] if each["document"] == "report.md")
        assert "dropped twice" in answer["content"]
        found = {n for marker in find_markers(answer["content"]) for n in marker.numbers}
        assert found <= registered
        assert {each["n"] for each in answer["citations"]} <= registered
        dropped = answer["content"].split("dropped twice")[1][:12]
        assert not find_markers(dropped), dropped
        assert "[1, 9]" in source["text"]  # the evidence is quoted as it stands

    def test_are_no_citations_of_an_extractive_answer(self, library):
        library.add("report.md", self.HOSTILE)
        session_id = library.session()

        answer = library.ask(session_id, "Was the Aero 5 dropped twice?")

        registered = set(library.numbers(session_id).values())
        assert {n for m in find_markers(answer["content"]) for n in m.numbers} <= registered
        number = cited(library, session_id, "dropped twice")
        assert number in {each["n"] for each in answer["citations"]}


class TestStreams:
    SAID = "The Aero 5 weighs 120 g [1]. It flies [99]. 【1】 `arr[1]` [1, 98]"

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11])
    def test_give_one_text_however_the_server_splits_it(self, with_model, size):
        pieces = [{"content": self.SAID[at : at + size]} for at in range(0, len(self.SAID), size)]
        with OpenAIServer(deltas(*pieces)) as server:
            library = with_model(server)
            session_id = library.session()
            _, events = library.stream(session_id, WEIGHT)

        streamed = "".join(each["text"] for name, each in events if name == "delta")
        final = events[-1][1]["content"]
        assert streamed == final
        assert "[1]" in final
        assert "[99]" not in json.dumps(events)
        assert "98" not in final
        assert "`arr[1]`" in final


class TestOpenAIClients:
    def test_that_resend_their_transcript_keep_every_number_over_restarts(self, library):
        said = []
        seen = {}
        for question in (WEIGHT, BATTERY, "What does the Aero 5 Pro cost?", WEIGHT):
            said.append({"role": "user", "content": question})
            answer = library.client.post("/v1/chat/completions", json={"messages": said}).get_json()
            said.append(answer["choices"][0]["message"])
            for source in answer["sources"]:
                assert seen.setdefault(source["chunk_id"], source["n"]) == source["n"]
            library.restart()

        assert len(seen) >= 2
        assert len(library.get("/sessions")["sessions"]) == 1
