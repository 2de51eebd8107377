"""The JSON API of sources: what programs may ask, and what nobody may."""

import time
from unittest.mock import Mock

import pytest

from rag.connectors.kinds import check_open
from rag.errors import Forbidden
from rag.records import DocumentSource
from rag.settings import Settings, SourceSettings
from tests.applications import app_of, application_of

SOURCES = "/api/v1/sources"


class Served:
    """A server that others log in to, with a folder that may be added and one that may not."""

    def __init__(self, folder):
        self.open, self.closed = folder / "open", folder / "closed"
        for each in (self.open, self.closed):
            each.mkdir()
            (each / "a.md").write_text("# Aero 5\n\nThe Aero 5 weighs 120 g.\n")
        tokens = {f"token-of-{name}": name for name in ("anna", "ben", "root")}
        auth = {"mode": "tokens", "tokens": tokens, "admins": ["root"], "managers": ["anna"]}
        self.app = application_of(
            Settings(
                data_dir=folder / "data",
                auth=auth,
                sources={
                    "folders": [str(self.open)],
                    "stores": ["s3://shared"],
                    "private_hosts": ["127.0.0.1"],
                },
            )
        )
        self.client = app_of(self.app).test_client()
        made = self.call("POST", "/api/v1/collections", by="anna", json={"name": "Lamps"})
        self.lamps = made.get_json()["id"]

    def call(self, method, url, *, by="anna", **given):
        headers = {"Authorization": f"Bearer token-of-{by}"}
        return self.client.open(url, method=method, headers=headers, **given)

    def add(self, address, *, by="anna", **more):
        body = {"address": str(address), "collection": self.lamps} | more
        return self.call("POST", SOURCES, by=by, json=body)

    def run(self):
        self.app.jobs.run_waiting()


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr("rag.connectors.folder.now", lambda: time.time() + 7200)
    made = Served(tmp_path)
    yield made
    made.app.stop()


class TestASource:
    def test_is_added_looked_at_and_told(self, served):
        made = served.add(served.open, include=["*.md"], every=3600)
        served.run()

        told = served.call("GET", f"{SOURCES}/{made.get_json()['id']}").get_json()
        assert made.status_code == 201
        assert (made.get_json()["state"], told["state"]) == ("running", "idle")
        assert (told["kind"], told["collection"], told["every"]) == ("folder", served.lamps, 3600)
        assert told["counts"]["new"] == 1
        assert told["last_synced_at"] < told["next_sync_at"]
        found = served.call("GET", "/api/v1/documents").get_json()["documents"]
        assert [each["name"] for each in found] == ["a.md"]

    def test_is_told_to_those_alone_who_manage_its_collection(self, served):
        source_id = served.add(served.open).get_json()["id"]

        others = [
            served.call(method, f"{SOURCES}/{source_id}{rest}", by="ben", json=body)
            for method, rest, body in (
                ("GET", "", None),
                ("PATCH", "", {"every": 60}),
                ("DELETE", "", None),
                ("POST", "/sync", {}),
                ("POST", "/confirm", None),
                ("POST", "/decline", None),
                ("POST", "/undo", None),
            )
        ]
        assert {each.status_code for each in others} == {404}
        assert served.call("GET", SOURCES, by="ben").get_json() == {"sources": []}
        assert len(served.call("GET", SOURCES).get_json()["sources"]) == 1

    def test_is_changed(self, served):
        source_id = served.add(served.open).get_json()["id"]

        changed = served.call("PATCH", f"{SOURCES}/{source_id}", json={"exclude": ["a.md"]})

        assert changed.get_json()["exclude"] == ["a.md"]
        assert served.call("PATCH", f"{SOURCES}/{source_id}", json={"every": 5}).status_code == 400

    def test_goes_with_its_documents(self, served):
        source_id = served.add(served.open).get_json()["id"]
        served.run()

        assert served.call("DELETE", f"{SOURCES}/{source_id}").status_code == 202
        served.run()

        assert served.call("GET", "/api/v1/documents").get_json()["documents"] == []
        assert served.call("GET", f"{SOURCES}/{source_id}").status_code == 404

    def test_goes_and_leaves_its_documents(self, served):
        source_id = served.add(served.open).get_json()["id"]
        served.run()

        served.call("DELETE", f"{SOURCES}/{source_id}?keep_documents=true")

        assert len(served.call("GET", "/api/v1/documents").get_json()["documents"]) == 1

    @pytest.mark.parametrize("login", ["ada:secret", "secret"])
    def test_takes_no_password(self, served, login):
        refused = served.add(f"https://{login}@127.0.0.1:1/docs")

        assert refused.status_code == 400
        assert "sources.passwords" in refused.get_json()["detail"]
        assert "secret" not in refused.get_data(as_text=True)

    def test_shows_no_password_that_was_taken_before(self, served):
        source_id = served.add("https://127.0.0.1:1/docs").get_json()["id"]
        served.app.sources.table.change(source_id, address="https://ada:secret@127.0.0.1:1/docs")

        told = served.call("GET", f"{SOURCES}/{source_id}").get_json()
        assert told["address"] == "https://ada:…@127.0.0.1:1/docs"

    def test_of_an_address_that_is_one_already_is_told_what_to_do(self, served):
        served.add(served.open)

        assert "groundnote source remove" in served.add(served.open).get_json()["detail"]

    def test_of_whoever_runs_the_server_keeps_what_that_one_leaves_out(self, served):
        (served.closed / "secret.md").write_text("# Secret\n\nThe key is 4711.\n")
        address, place = str(served.closed), served.lamps
        made = served.app.sources.add(
            DocumentSource("", address, "", "", place, exclude=("secret.md",), is_operators=True)
        )
        served.run()

        refused = served.call("PATCH", f"{SOURCES}/{made.id}", json={"exclude": []})
        changed = served.call("PATCH", f"{SOURCES}/{made.id}", json={"every": 3600})

        assert (refused.status_code, changed.status_code) == (403, 200)
        assert changed.get_json()["exclude"] == ["secret.md"]

    def test_keeps_its_collection_from_being_deleted(self, served):
        served.add(served.open, exclude=["*"])
        served.run()

        refused = served.call("DELETE", f"/api/v1/collections/{served.lamps}")

        assert refused.status_code == 409
        assert "source" in refused.get_json()["detail"]

    def test_keeps_documents_in_step_that_were_put_elsewhere(self, served):
        source_id = served.add(served.open).get_json()["id"]
        served.run()
        other = served.call("POST", "/api/v1/collections", json={"name": "Other"}).get_json()["id"]
        (document,) = served.call("GET", "/api/v1/documents").get_json()["documents"]
        moved = f"/api/v1/documents/{document['id']}"
        served.call("PUT", moved, json={"collection": other})
        (served.open / "a.md").write_text("# Aero 5\n\nThe Aero 5 weighs 130 g, they say.\n")

        served.call("POST", f"{SOURCES}/{source_id}/sync", json={})
        served.run()

        (same,) = served.call("GET", "/api/v1/documents").get_json()["documents"]
        assert (same["id"], same["collection_id"]) == (document["id"], other)
        assert same["content_hash"] != document["content_hash"]


class TestWhatTheServerMayRead:
    @pytest.mark.parametrize(
        "address",
        [
            "/etc",
            "file:///etc",
            "FILE:///etc",
            "{open}/../closed",
            "git+file:///etc",
            "git+ssh://host/x.git",
            "/srv/repository.git",
            "zip://*::file:///etc/passwd.zip",
            "https://host/x::file:///etc/passwd",
            "s3://other/x",
            "s3://shared-not",
            "s3://shared/../other",
            "s3://shared/%2e%2e/other",
            "sftp://host/x",
            "https://ada:{{wiki}}@host/",  # a password of the settings
            "zip::http://[::1]/x.zip",
        ],
    )
    def test_is_not_what_a_caller_may_have_read(self, served, address):
        refused = served.add(address.format(open=served.open))

        assert refused.status_code == 403, refused.get_json()
        assert "whoever runs" in refused.get_json()["detail"]

    def test_not_through_a_link_either(self, served):
        (served.open / "link").symlink_to(served.closed, target_is_directory=True)

        assert served.add(served.open / "link").status_code == 403

    def test_and_settings_are_asked_at_each_sync(self, served):
        inner = served.open / "inner"
        inner.mkdir()
        source_id = served.add(inner).get_json()["id"]
        inner.rmdir()
        inner.symlink_to(served.closed, target_is_directory=True)
        served.run()

        told = served.call("GET", f"{SOURCES}/{source_id}").get_json()
        assert told["state"] == "failed"
        assert served.call("GET", "/api/v1/documents").get_json()["documents"] == []

    def test_what_settings_name_may_be_added(self):
        settings = SourceSettings(stores=("s3://shared", "https://wiki.test"))

        check_open("s3://shared/team", settings)
        check_open("https://ada:{wiki}@wiki.test/docs", settings)
        with pytest.raises(Forbidden):
            check_open("https://ada:{wiki}@wiki.test.evil.test/docs", settings)

    @pytest.mark.parametrize(
        "host",
        ["[::1]", "[::ffff:10.0.0.1]", "[fe80::1%25eth0]", "[64:ff9b::a00:1]", "[2002:a00:1::]",
         "[2001:db8::1]", "[::]"],
    )  # fmt: skip
    def test_is_no_host_of_this_network_by_its_number(self, served, host):
        refused = served.add(f"http://{host}/docs")

        assert refused.status_code == 403
        assert "asked" in refused.get_json()["detail"]

    def test_a_host_elsewhere_may_be_named_by_its_number(self, served, monkeypatch):
        monkeypatch.setattr("socket.create_connection", Mock(side_effect=OSError("not tried")))

        assert served.add("http://[2606:4700:4700::1111]/docs").status_code == 201

    def test_needs_the_right_to_manage(self, served):
        members = {"ben": "write"}
        served.call("PUT", f"/api/v1/collections/{served.lamps}", json={"members": members})

        assert served.add(served.open, by="ben").status_code == 403


@pytest.mark.parametrize("address", ["nothing://x", " ", "x" * 3000])
def test_an_address_of_no_kind_is_told_so(served, address):
    assert served.add(address).status_code in (400, 422)


def test_a_lost_right_is_told_and_removes_nothing(served):
    source_id = served.add(served.open).get_json()["id"]
    served.run()
    served.call("PUT", f"/api/v1/collections/{served.lamps}", json={"members": {"ben": "manage"}})
    served.app.sources.table.change(source_id, owner="cleo")
    (served.open / "a.md").unlink()

    served.call("POST", f"{SOURCES}/{source_id}/sync", json={})
    served.run()

    told = served.call("GET", f"{SOURCES}/{source_id}").get_json()
    assert told["state"] == "failed"
    assert "may not manage" in told["reason"]
    assert len(served.call("GET", "/api/v1/documents").get_json()["documents"]) == 1
