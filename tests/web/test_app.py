import gzip
import subprocess
import sys

import pytest

import app as wsgi
from rag.web import request_context


def test_importing_the_wsgi_module_loads_nothing_heavy():
    code = "import app, sys; print([m for m in ('torch', 'chromadb', 'flask') if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_wsgi_module_makes_a_whole_app(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(tmp_path))

    made = wsgi.app
    try:
        assert made.test_client().get("/healthz").status_code == 200
        assert wsgi.app is made
    finally:
        made.extensions["groundnote"].stop()
        del wsgi.app


def test_the_wsgi_module_has_nothing_else():
    with pytest.raises(AttributeError, match="nothing"):
        _ = wsgi.nothing


def test_a_json_body_over_its_own_limit_is_refused(client, monkeypatch):
    monkeypatch.setattr(request_context, "MAX_JSON_BYTES", 100)

    response = client.post("/api/v1/search", json={"query": "a" * 200})

    assert response.status_code == 413
    assert "at most 100" in response.get_json()["detail"]


def test_texts_are_compressed_for_whoever_can_read_that(client):
    squeezed = client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
    plain = client.get("/openapi.json", headers={"Accept-Encoding": "identity"})

    assert squeezed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(squeezed.data) == plain.data
    assert len(squeezed.data) < len(plain.data) / 3
    assert "Content-Encoding" not in plain.headers
    assert "Accept-Encoding" in squeezed.vary
    assert "Accept-Encoding" in plain.vary


def test_events_and_what_is_short_stay_as_they_are(client):
    short = client.get("/healthz", headers={"Accept-Encoding": "gzip"})
    session = client.post("/api/v1/sessions", json={}).get_json()["id"]
    events = client.post(
        f"/api/v1/sessions/{session}/messages",
        json={"content": "How long do refunds take?"},
        headers={"Accept": "text/event-stream", "Accept-Encoding": "gzip"},
    )

    assert events.mimetype == "text/event-stream"
    assert "Content-Encoding" not in events.headers
    assert "Content-Encoding" not in short.headers
