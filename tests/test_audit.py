"""Everything that changes something is written down with who did it, by whatever way."""

import getpass
import io

import pytest
from click.testing import CliRunner

from rag.cli import main
from rag.db import writing
from rag.db.audit_trail import HERE, AuditTrail, acting, record
from rag.records import DocumentSource
from rag.settings import Settings
from rag.wiring.stores import open_database
from tests.applications import app_of, application_of

TOKENS = {"token-of-anna": "anna", "token-of-ben": "ben"}
OPERATOR = f"operator:{getpass.getuser()}"


def entries(engine):
    return [
        (each.owner, each.action, each.subject.partition(" ")[2] or each.subject, each.address)
        for each in AuditTrail(engine).entries()
    ]


class TestTheCommandLine:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch):
        monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(tmp_path / "data"))

        def run(*words):
            done = CliRunner().invoke(main, words, catch_exceptions=False)
            assert done.exit_code == 0, done.output
            return done.output

        return run

    def test_says_who_ran_it(self, run, tmp_path):
        (tmp_path / "a.md").write_text("# Aero 5\n\nThe Aero 5 weighs 410 g.\n")
        run("collections", "add", "Manuals", "--owner", "anna")
        run("collections", "give", "Manuals", "ben", "read")
        run("ingest", str(tmp_path / "a.md"), "--collection", "Manuals")
        engine = open_database(Settings(data_dir=tmp_path / "data"))

        assert entries(engine) == [
            (OPERATOR, "collection.created", "Manuals", HERE),
            (OPERATOR, "right.changed", "ben read", HERE),
            (OPERATOR, "document.stored", "a.md", HERE),
        ]
        assert '"document.stored"' in run("audit")


class TestAProgram:
    @pytest.fixture
    def application(self, tmp_path):
        auth = {"mode": "tokens", "tokens": TOKENS, "managers": ["anna"], "admins": ["anna"]}
        made = application_of(Settings(data_dir=tmp_path, auth=auth))
        yield made
        made.stop()

    def test_is_named_with_its_address_also_by_the_job_that_it_gives(self, application):
        client = app_of(application).test_client()
        anna = {"Authorization": "Bearer token-of-anna"}
        upload = {"file": (io.BytesIO(b"# A\n\nText.\n"), "a.md")}
        at = {"headers": anna, "environ_base": {"REMOTE_ADDR": "192.0.2.7"}}
        client.post("/api/v1/documents", data=upload, **at)
        application.jobs.run_waiting()
        (document,) = client.get("/api/v1/documents", **at).get_json()["documents"]
        client.delete(f"/api/v1/documents/{document['id']}", **at)
        # Nobody is taken for the caller of an earlier request.
        client.get("/healthz")

        assert entries(application.engine) == [
            ("anna", "document.uploaded", "a.md", "192.0.2.7"),
            ("anna", "document.stored", "a.md", "a job"),
            ("anna", "document.deleted", "a.md", "192.0.2.7"),
        ]


def test_what_is_rolled_back_was_not_done(engine):
    class Fault(Exception):
        pass

    def delete():
        with writing(engine) as connection, acting("anna", ""):
            record(connection, "document.deleted", "a.md")
            raise Fault

    with pytest.raises(Fault):
        delete()

    assert entries(engine) == []


def test_a_source_says_so_itself(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nText.\n")
    application = application_of(Settings(data_dir=tmp_path / "data"))
    wish = DocumentSource("", kind="", name="", address=str(tmp_path / "docs"), is_operators=True)
    made = application.sources.add(wish)
    application.jobs.run_waiting()
    (tmp_path / "docs" / "a.md").rename(tmp_path / "docs" / "b.md")
    application.sources.sync(made.id)
    application.jobs.run_waiting()
    found = entries(application.engine)
    application.stop()

    assert ("", "document.renamed", "to b.md", f"source {made.id}") in found
    assert found[0][1] == "source.added"
    assert ("", "document.stored", "a.md", f"source {made.id}") in found


def test_conversations_that_nobody_used_are_named(tmp_path):
    settings = Settings(data_dir=tmp_path, sessions={"ttl_hours": 1e-9})
    application = application_of(settings)
    session = application.store.create("anna")
    application.forget_old_sessions()
    found = [tuple(each)[1:] for each in entries(application.engine)]
    application.stop()

    assert found == [("session.expired", session.id, "sessions.ttl_hours")]
