"""Every way out, with a model that obeys whoever attacks and without one: nothing is asked for."""

import json
import re
from urllib.request import Request, urlopen

import pytest

from rag.citations.markers import cited_numbers
from rag.documents.files import IncomingFile
from rag.mcp.server import LibraryApi, mcp_server
from rag.settings import Settings
from tests.applications import app_of, application_of, application_over, served
from tests.mcp.test_server import call
from tests.model_application import World
from tests.openai_server import reply
from tests.render.attacks import attacks
from tests.render.readers import harms

EVIL = [text for kind in ("pictures", "tags", "definitions", "links") for text in attacks(kind)]
SAID = "The Aero 5 weighs 120 g [1].\n\n" + "\n\n".join(EVIL[::23])
MARKDOWN_NAME = "![x](http:evil.example) <script>a [^1] [1](http:evil.example).md"
JSON = {"Content-Type": "application/json"}
V1 = {"model": "groundnote", "messages": [{"role": "user", "content": "How heavy is the Aero 5?"}]}


def leads(number, href):
    """A number of ours leads to the page of its source."""
    return "/sources/" in href and number.strip("[]^\u2060 ") in href.partition("/sources/")[2]


@pytest.fixture(scope="module")
def obedient(tmp_path_factory):
    with World(tmp_path_factory.mktemp("obedient")) as world:
        yield world


@pytest.fixture(scope="module")
def without_model(tmp_path_factory):
    """A library whose documents attack, and nobody who writes."""
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("cards")))
    rows = "\n".join(f"| Zorbium {n} | ![x](http://evil.example/{n}) <b> |" for n in range(3))
    texts = {
        "zorbium.txt": "Zorbium melts at 90 °C. ![](http://evil.example/z) <img src=x>\n\n"
        "[1]: http://evil.example\n\nSee [1] and [^1].\n\nZorbium boils at 900 °C "
        ":contentReference[oaicite:9]{index=9}, so they say citeturn0search8.",
        "prices ![x](http:evil) <b>.md": f"# Zorbium <img src=x> ![](http://evil.example)\n\n"
        f"| Zorbium | Price |\n| --- | --- |\n{rows}\n",
        "more.csv": "Zorbium,Price\n<script>alert(1)</script>,![x](http://evil.example)\n",
    }
    files = [IncomingFile.from_bytes(name, text.encode()) for name, text in texts.items()]
    list(application.ingestion.ingest(files))
    yield app_of(application).test_client()
    application.stop()


def ask(world, path, body, **options):
    world.server.behaviours[:] = [reply(SAID)]
    return world.client.post(path, json=body, **options)


def frames(stream):
    return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]


class TestOfAModel:
    def test_the_chat_protocol_whole_and_streamed(self, obedient):
        whole = ask(obedient, "/v1/chat/completions", V1).get_json()
        stream = ask(obedient, "/v1/chat/completions", V1 | {"stream": True}).text
        chunks = [
            json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")
        ]
        streamed = "".join(
            choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
        )

        text = whole["choices"][0]["message"]["content"]
        assert "120 g" in text
        assert harms(text, leads=leads) == harms(streamed, leads=leads) == {}

    def test_a_long_line_without_blanks_over_http(self, obedient):
        line = "The-Aero-5-weighs-120-g" + "![x](http://evil.example/x)<img/src=x>[1]:x" * 300
        obedient.server.behaviours[:] = [reply(line)]
        body = json.dumps(V1 | {"stream": True}).encode()
        with served(obedient.client.application) as url:
            request = Request(f"{url}/v1/chat/completions", body, JSON)
            with urlopen(request, timeout=30) as response:
                stream = response.read().decode()
        choices = [choice for each in frames(stream) for choice in each["choices"]]
        pieces = [text for each in choices if (text := each["delta"].get("content"))]

        assert stream.rstrip().endswith("data: [DONE]")
        assert "".join(pieces).count("evil.example: x") > 250
        assert harms("".join(pieces), leads=leads) == {}

    def test_the_responses_protocol(self, obedient):
        body = {"model": "groundnote", "input": "How heavy is the Aero 5?"}
        whole = ask(obedient, "/v1/responses", body).get_json()
        stream = ask(obedient, "/v1/responses", body | {"stream": True}).text
        pieces = [
            json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")
        ]
        streamed = "".join(
            each["delta"] for each in pieces if each["type"] == "response.output_text.delta"
        )

        assert harms(whole["output"][0]["content"][0]["text"], leads=leads) == {}
        assert "120 g" in streamed
        assert harms(streamed, leads=leads) == {}

    def test_the_api_the_export_and_the_pages(self, obedient):
        events = obedient.stream("How heavy is the Aero 5?", reply(SAID))
        deltas = "".join(data["text"] for name, data in events if name == "delta")
        listed = obedient.client.get(obedient.at("/messages")).get_json()["messages"][-1]
        exported = obedient.client.get(obedient.at("/export")).text
        page = obedient.client.get(f"/sessions/{obedient.session_id}").text

        assert "120 g" in listed["content"]
        assert harms(listed["content"]) == harms(deltas) == harms(exported) == {}
        for cited in listed["citations"]:
            assert listed["content"][cited["start"] : cited["end"]] == f"[{cited['n']}]"
        answer = page.partition('class="answer')[2]
        assert "evil.example" in answer
        assert not re.search("<img|<iframe|onload=", page)

    def test_the_tools_of_agents(self, obedient):
        server = mcp_server(LibraryApi("http://127.0.0.1", app=app_of(obedient.application)))
        obedient.server.behaviours[:] = [reply(SAID)]

        told = call(server, "ask", question="How heavy is the Aero 5?")

        assert "120 g" in told["text"]
        assert harms(told["text"]) == {}

    def test_what_is_printed(self, obedient):
        obedient.stream("How heavy is the Aero 5?", reply(SAID))

        page = obedient.client.get(f"/sessions/{obedient.session_id}/print").text

        assert "120 g" in page
        assert not re.search("<img|<iframe|onload=", page)

    def test_what_was_brought_from_elsewhere(self, obedient):
        made = obedient.client.post("/api/v1/sessions", json={"title": EVIL[0][:150]}).get_json()
        said = [("user", SAID), ("assistant", SAID), ("user", "```"), ("assistant", "```\n<b>")]
        messages = [{"role": role, "content": content} for role, content in said]
        at = f"/api/v1/sessions/{made['id']}"
        sources = [{"n": 1, "document": SAID[:200], "title": SAID[:200], "text": SAID}]
        body = {"messages": messages, "sources": sources}
        assert obedient.client.post(f"{at}/import", json=body).status_code == 201

        told = obedient.client.get(f"{at}/messages").get_json()["messages"]

        assert harms(obedient.client.get(f"{at}/export").text) == {}
        assert [harms(each["content"]) for each in told if each["role"] == "assistant"] == [{}, {}]


class TestWithoutAModel:
    @pytest.mark.parametrize(
        "question", ["What is Zorbium?", "At which temperature does Zorbium melt?",
                     "Price of Zorbium 1", "Which documents do you have?"],
    )  # fmt: skip
    def test_no_document_speaks_for_itself(self, without_model, question):
        messages = [{"role": "user", "content": question}]
        answer = without_model.post("/v1/chat/completions", json={"messages": messages})
        made = without_model.post("/api/v1/sessions", json={}).get_json()
        at = f"/api/v1/sessions/{made['id']}"
        told = without_model.post(f"{at}/messages", json={"content": question}).get_json()

        text = answer.get_json()["choices"][0]["message"]["content"]
        assert harms(text, leads=leads) == harms(told["content"]) == {}
        assert harms(without_model.get(f"{at}/export").text) == {}
        page = without_model.get(f"/sessions/{made['id']}").text
        assert not re.search("<img|<script>alert", page)

    def test_no_mark_of_a_chat_client_in_a_document_cites_when_an_export_is_imported(
        self, without_model
    ):
        def session():
            made = without_model.post("/api/v1/sessions", json={}).get_json()
            return f"/api/v1/sessions/{made['id']}"

        at, again = session(), session()
        question = {"content": "At which temperature does Zorbium boil?"}
        told = without_model.post(f"{at}/messages", json=question).get_json()["content"]
        exported = without_model.get(f"{at}/export?format=json").get_json()
        messages = [{key: m[key] for key in ("role", "content")} for m in exported["messages"]]
        assert without_model.post(f"{again}/import", json={"messages": messages}).status_code == 201

        brought = without_model.get(f"{again}/messages").get_json()["messages"][1]["content"]
        assert "900 °C" in told
        assert "(9)" in told
        assert set(cited_numbers(brought)) == set(cited_numbers(told))
        assert not {8, 9} & set(cited_numbers(brought))

    def test_no_name_of_a_document_is_markdown_in_a_whole_export(self, tmp_path):
        with application_over(tmp_path, {MARKDOWN_NAME: "Zorbium melts at 90 °C."}) as application:
            client = app_of(application).test_client()
            at = f"/api/v1/sessions/{client.post('/api/v1/sessions', json={}).get_json()['id']}"
            client.post(f"{at}/messages", json={"content": "When does Zorbium melt?"})
            exported = client.get(f"{at}/export").text

        assert "90 °C" in exported
        assert "evil.example" in exported
        assert harms(MARKDOWN_NAME)
        assert harms(exported) == {}

    def test_what_is_a_documents_own_word_stays_as_it_is(self, without_model):
        found = without_model.post("/api/v1/search", json={"query": "Zorbium melts"}).get_json()

        assert any("![](http://evil.example/z)" in hit["text"] for hit in found["hits"])
