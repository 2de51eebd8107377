"""`groundnote serve` starts, refuses and stops in so many words."""

import json
import signal
import socket

import pytest

from rag.search.index_lock import holder_of
from tests.deployment.conftest import until
from tests.deployment.servers import free_port


@pytest.fixture
def data(tmp_path):
    return tmp_path / "var"


def refusal(process):
    """What a process said that ends by itself, with an error but without a traceback."""
    assert process.wait() == 1, process.said()
    assert "Traceback" not in process.said()
    assert process.said().startswith("Error: ")
    return process.said()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stops_at_once_and_leaves_nothing_behind(groundnote, data, web, number):
    server = groundnote("serve", "--port", "0")
    until(lambda: web.get(f"{server.url()}/readyz").json()["status"] == "ready")
    assert holder_of(data / "chroma") == json.loads((data / "server.json").read_text())["pid"]

    assert server.end(number) == 0

    assert holder_of(data / "chroma") is None
    assert not (data / "server.json").exists()
    assert "Traceback" not in server.said()


def test_a_second_server_names_the_first_and_leaves_it_alone(groundnote, data, web):
    first = groundnote("serve", "--port", "0")
    url = first.url()
    pid = json.loads((data / "server.json").read_text())["pid"]

    said = refusal(groundnote("serve", "--port", "0"))

    assert f"process {pid}" in said
    assert url in said
    assert json.loads((data / "server.json").read_text())["pid"] == pid
    until(lambda: web.get(f"{url}/readyz").json()["status"] == "ready")


def test_says_that_the_port_is_taken(groundnote):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        said = refusal(groundnote("serve", "--port", port))

    assert f"Port {port}" in said
    assert "--port" in said


def test_listens_where_host_and_port_say_on_ipv6_too(groundnote, web):
    port = free_port()
    server = groundnote("serve", HOST="::1", PORT=str(port))

    assert server.url() == f"http://[::1]:{port}"
    assert web.get(f"{server.url()}/healthz").json()["status"] == "ok"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"HOST": "no.such.host.invalid"}, "web.host"),
        ({"PORT": "many"}, "web.port is 'many'"),
        ({"GROUNDNOTE_DATA_DIR": "/dev/null/var"}, "GROUNDNOTE_DATA_DIR"),
        ({"GROUNDNOTE_SESSIONS__DATABASE_URL": "mysql://x/y"}, "sessions.database_url"),
    ],
    ids=["host", "port", "folder", "database"],
)
def test_says_which_setting_is_wrong(groundnote, variables, words):
    variables = {"PORT": "0"} | variables

    assert words in refusal(groundnote("serve", **variables))


def test_a_worker_that_cannot_start_is_not_started_again_and_again(groundnote, data, library):
    application = library()
    application.jobs.submit_ingest("a.md", b"# A\n\nSome text.")
    application.jobs.run_waiting()
    application.stop()

    server = groundnote("serve", "--port", "0", GROUNDNOTE_EMBEDDING__MODEL="another")

    assert server.wait() != 0
    assert server.said().count("groundnote reindex") == 1
    assert "Traceback" not in server.said()
