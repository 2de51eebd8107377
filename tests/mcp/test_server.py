"""Agents ask the library over the Model Context Protocol, with the rights of whoever calls."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from werkzeug.serving import make_server

from rag.documents.files import IncomingFile
from rag.llm.discovery import SecretBox
from rag.mcp.server import LibraryApi, http_app, mcp_server
from rag.settings import Settings
from rag.web.access.counters import WRONG_PER_MINUTE
from rag.wiring.listeners import RELAY_HEADER, listener_policy
from tests.applications import app_of, application_of, application_over
from tests.asynchronous import finished
from tests.openai_server import slowly
from tests.waiting import until
from tests.web.kit import product

FRAMEWORKS = Path(sys.prefix) / "frameworks" / "bin" / "python"
FILES = {
    "aero.md": "# Aero 5\n\n## Weight\n\nThe Aero 5 weighs 410 g.\n\n## Ports\n\nIt has two ports.",
    "prices.csv": "product,price\nAero 5,120\nPico,40\n",
}
CITED = "The Aero 5 weighs 410 g [1]. The Aero 5 weighs 500 g [1]."


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("library"), FILES) as application:
        yield application


@pytest.fixture(scope="module")
def server(application):
    return mcp_server(LibraryApi("http://127.0.0.1", app=app_of(application)))


def call(server, name, **arguments):
    """What a tool says: its structured content, or its text where it failed."""

    async def called():
        async with Client(server) as client:
            result = await client.call_tool(name, arguments)
            return result.content[0].text if result.is_error else result.structured_content

    return finished(called())


def read(server, uri):
    async def reading():
        async with Client(server) as client:
            return (await client.read_resource(uri)).contents[0].text

    return finished(reading())


class TestTools:
    def test_are_described(self, server):
        async def listed():
            async with Client(server) as client:
                return (await client.list_tools()).tools

        tools = {tool.name: tool for tool in finished(listed())}

        assert set(tools) == {
            *("search", "fetch", "ask", "check"),
            *("query_table", "list_tables", "list_documents", "list_collections"),
            "list_facets",
        }
        assert all(tool.description for tool in tools.values())
        assert {name for name, tool in tools.items() if not tool.annotations.read_only_hint} == {
            "ask"
        }
        assert "caller" not in tools["search"].input_schema["properties"]

    def test_filter_and_say_what_was_filtered(self, server):
        types = call(server, "list_facets")["type"]
        found = call(server, "search", query="How heavy is it?", filters={"type": "csv"})

        assert types == {"Markdown": 1, "CSV": 1}
        assert {result["document"] for result in found["results"]} == {"prices.csv"}
        assert found["filtered"] == {"filters": {"type": "csv"}, "documents": 1}

    def test_find_and_fetch_what_was_found(self, server):
        results = call(server, "search", query="How heavy is the Aero 5?")["results"]
        fetched = call(server, "fetch", id=results[0]["id"])

        assert "410 g" in results[0]["text"]
        assert "410 g" in fetched["text"]
        assert fetched["metadata"]["document"] == "aero.md"
        assert results[0]["url"].startswith("http://127.0.0.1/documents/")

    def test_fetch_a_whole_document(self, server):
        (document,) = [
            each
            for each in call(server, "list_documents")["documents"]
            if each["name"] == "aero.md"
        ]
        whole = call(server, "fetch", id=document["id"])

        assert "410 g" in whole["text"]
        assert "two ports" in whole["text"]
        assert whole["metadata"]["next"] is None

    def test_answer_with_citations_that_keep_their_numbers(self, server):
        first = call(server, "ask", question="How heavy is the Aero 5?")
        second = call(server, "ask", question="How many ports?", session=first["session"])
        third = call(server, "ask", question="How heavy is the Aero 5?", session=first["session"])

        numbers = {source["n"]: source["text"] for source in first["sources"]}
        assert "410 g" in first["text"]
        assert second["session"] == first["session"]
        assert all(
            numbers.get(each["n"], each["text"]) == each["text"] for each in third["sources"]
        )

    def test_tell_what_a_source_carries(self, server):
        checked = call(server, "check", text=CITED, sources=["The Aero 5 weighs 410 g."])

        verdicts = [each["verdict"] for each in checked["citations"]]
        assert verdicts == ["supported", "contradicted"]

    def test_look_up_sources_for_a_text_that_has_none(self, server):
        checked = call(server, "check", text="The Aero 5 weighs 410 g. The moon is made of cheese.")

        (citation,) = [each for each in checked["citations"] if each["verdict"] == "supported"]
        (source,) = [each for each in checked["sources"] if each["n"] == citation["n"]]
        assert "410 g" in source["text"]
        assert len(checked["unsourced"]) == 1

    def test_compute_over_rows(self, server):
        computed = call(server, "query_table", question="What is the average price?")

        assert computed["rows"] == [[80]]
        assert computed["plan"]["table"]

    @pytest.mark.parametrize(
        ("name", "arguments", "said"),
        [
            pytest.param("fetch", {"id": "nothing"}, "no document", id="unknown id"),
            pytest.param("ask", {"question": " "}, "empty", id="empty question"),
            pytest.param("ask", {"question": "a", "session": "x/../y"}, "no", id="odd session"),
            pytest.param("search", {"query": "a", "limit": 0}, "limit", id="limit"),
            pytest.param("query_table", {}, "question or a plan", id="neither"),
            pytest.param("check", {"text": "a [1].", "session": "zz"}, "no session", id="whose"),
        ],
    )
    def test_say_what_is_wrong(self, server, name, arguments, said):
        assert said in call(server, name, **arguments)


class TestResources:
    def test_are_the_documents(self, server):
        documents = call(server, "list_documents")["documents"]
        (found,) = [each["id"] for each in documents if each["name"] == "aero.md"]

        assert "two ports" in read(server, f"groundnote://documents/{found}")

    def test_are_the_sources_of_conversations(self, server):
        answer = call(server, "ask", question="How heavy is the Aero 5?")
        text = read(server, f"groundnote://sessions/{answer['session']}/sources/1")

        assert text.startswith("[1] ")

    def test_of_nobody_are_not_found(self, server):
        with pytest.raises(ExceptionGroup) as raised:
            read(server, "groundnote://documents/nothing")

        assert "There is no document" in repr(raised.value)


# ── Rights ───────────────────────────────────────────────────────────────────────────────────

TOKENS = {"token-of-anna": "anna", "token-of-ben": "ben"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A library of two owners, with a document that Anna alone may read."""
    folder = tmp_path_factory.mktemp("guarded")
    settings = Settings(
        data_dir=folder, auth={"mode": "tokens", "tokens": TOKENS, "managers": ["anna"]}
    )
    application = application_of(settings)
    annas = application.collections.create("anna", "Annas")
    secret = IncomingFile.from_bytes("secret.md", b"# Secret\n\nThe code is 4711.\n")
    list(application.ingestion.ingest([replace(secret, owner="anna", collection_id=annas.id)]))
    yield application
    application.stop()


@contextmanager
def served(application):
    """Its MCP server over HTTP on loopback; the URL."""
    settings = application.settings
    secrets = SecretBox(settings.data_dir)
    library = LibraryApi("http://127.0.0.1", app=app_of(application), secrets=secrets)
    app = http_app(mcp_server(library), library, listener_policy(settings, "127.0.0.1"))
    running = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        thread.join(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.should_exit = True
        thread.join(10)


def called_with(url, token, name, **arguments):
    """What a tool says to the holder of a token."""

    async def called():
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return (await client.call_tool(name, arguments)).structured_content

    return finished(called())


class TestRights:
    def test_are_those_of_the_token(self, guarded):
        with served(guarded) as url:
            of_anna = called_with(url, "token-of-anna", "search", query="What is the code?")
            of_ben = called_with(url, "token-of-ben", "search", query="What is the code?")

        assert "4711" in of_anna["results"][0]["text"]
        assert of_ben["results"] == []

    @pytest.mark.parametrize("token", ["", "token-of-nobody"])
    def test_are_nobodys_without_a_token(self, guarded, token):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with served(guarded) as url:
            answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1}, headers=headers)

        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "token" in answer.json()["error"]

    def test_end_with_another_hosts_name(self, guarded):
        headers = {"Authorization": "Bearer token-of-anna", "Host": "evil.example"}
        with served(guarded) as url:
            answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1}, headers=headers)

        assert answer.status_code == 421

    def test_end_with_a_page_of_another_site(self, guarded):
        headers = {"Authorization": "Bearer token-of-anna", "Origin": "http://evil.example"}
        with served(guarded) as url:
            answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1}, headers=headers)

        assert answer.status_code == 403

    def test_of_one_are_not_held_up_by_the_wrong_tokens_of_another(self, guarded):
        def status(url, token, address):
            headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
            # What a client says of itself under our own name is nobody's word.
            headers[RELAY_HEADER] = "198.51.100.9 forged"
            return httpx2.post(url, json={"jsonrpc": "2.0", "id": 1}, headers=headers).status_code

        with served(guarded) as url:
            wrong = [status(url, f"wrong-{n}", "192.0.2.1") for n in range(WRONG_PER_MINUTE + 2)]
            of_ben = status(url, "token-of-ben", "192.0.2.2")
            more = status(url, "wrong", "192.0.2.3")

        assert wrong[-1] == 429
        assert of_ben not in (401, 429)
        assert more == 401


@pytest.mark.slow
class TestAgents:
    def test_of_other_frameworks_are_told_what_the_documents_say(self, guarded):
        if not FRAMEWORKS.exists():
            pytest.skip("the frameworks are not installed: make clients")
        shared = IncomingFile.from_bytes("aero.md", FILES["aero.md"].encode())
        list(guarded.ingestion.ingest([shared]))
        with served(guarded) as url:
            done = subprocess.run(
                [FRAMEWORKS, Path(__file__).with_name("agents_over_mcp.py"), url, "token-of-ben"],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )

        assert done.returncode == 0, done.stderr[-3000:]
        made = json.loads(done.stdout.splitlines()[-1])
        assert made.keys() == {"agents sdk", "langchain"}
        for told in made.values():
            assert "410 g" in told
            assert "[1]" in told
            assert "4711" not in told


@pytest.mark.slow
class TestCommand:
    def test_serves_over_standard_input(self, tmp_path):
        environment = {**os.environ, "GROUNDNOTE_DATA_DIR": str(tmp_path)}
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "rag.cli", "mcp"], env=environment
        )

        assert call(command, "list_documents") == {"documents": [], "total": 0}

    def test_asks_the_server_that_runs(self, tmp_path, application):
        running = make_server("127.0.0.1", 0, app_of(application), threaded=True)
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}"
        environment = {**os.environ, "GROUNDNOTE_DATA_DIR": str(tmp_path)}
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "rag.cli", "mcp", "--url", url], env=environment
        )
        try:
            assert call(command, "list_documents")["total"] == len(FILES)
        finally:
            running.shutdown()
            thread.join()


class TestLongWork:
    @pytest.fixture(scope="class")
    def slow(self, tmp_path_factory):
        """A server whose model takes its time."""
        with product(tmp_path_factory.mktemp("product") / "home") as kit:
            kit.model.behaviours[:] = [slowly("It weighs 120 g [1]. " * 40, seconds_a_word=0.2)]
            yield kit

    def test_says_where_the_answer_will_stand_and_ends_with_the_call(self, slow):
        told = []

        async def progress(_done, _total, message):
            told.append(message)

        async def called():
            async with Client(mcp_server(LibraryApi(slow.url))) as client:
                asked = {"question": "How heavy is the Aero 5?"}
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, "ask", asked, None, progress)
                    while not slow.model.requests:
                        await anyio.sleep(0.05)
                    group.cancel_scope.cancel()

        finished(called())

        assert told[0].startswith("Session ")
        assert slow.model.disconnected.wait(10)
        until(lambda: not slow.call("GET", "/api/v1/sessions")[1]["sessions"])

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("search", {"query": "weight", "collection": "", "limit": None}),
            ("ask", {"question": "How heavy is the Aero 5?", "session": "", "collection": ""}),
            ("check", {"text": "It weighs 410 g [1].", "session": "", "sources": ["It is 410 g."]}),
            ("list_documents", {"collection": ""}),
        ],
    )
    def test_an_empty_text_is_as_if_it_was_left_out(self, server, name, arguments):
        assert isinstance(call(server, name, **arguments), dict)

    def test_tables_are_listed_with_their_ids(self, server):
        listed = call(server, "list_tables")["tables"]

        assert [each["name"] for each in listed] == ["prices"]
        assert listed[0]["id"]
