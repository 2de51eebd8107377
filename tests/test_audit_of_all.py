"""Every route, command and kind of job that changes something is in the audit, or says why not.

A new one fails here until it is listed: with what it writes down, or with the reason for nothing.
"""

import io
import json

import click
import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from rag.cli import main
from rag.cli.models import ModelOffer
from rag.connectors.table import SYNC, SourceTable
from rag.db import open_engine, revisions, writing
from rag.db.audit_trail import AuditTrail
from rag.db.engine import upgrade
from rag.jobs.background import COMPACT, INGEST, REREAD
from rag.records import Standing
from rag.sessions.store import SqlConversationStore
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.fakes import HashEmbedder
from tests.openai_server import OpenAIServer
from tests.prepared import prepare

TRANSCRIPT = "the conversation, which only grows, says itself who said what and when"
OWN_VIEW = "how the caller sees a conversation of its own; nothing that was said changes"
DERIVED = "made anew from a conversation at any time"
READS = "changes nothing"
UNAUDITED_ROUTES = {
    "POST /api/v1/sessions": TRANSCRIPT,
    "POST /api/v1/sessions/<session_id>/branches": TRANSCRIPT,
    "POST /api/v1/sessions/<session_id>/import": TRANSCRIPT,
    "POST /api/v1/sessions/<session_id>/messages": TRANSCRIPT,
    "POST /api/v1/sessions/<session_id>/messages/<index>/regenerate": TRANSCRIPT,
    "POST /api/v1/sessions/<session_id>/messages/<index>/stop": TRANSCRIPT,
    "POST /api/v1/tables/query": TRANSCRIPT,
    "POST /ask": TRANSCRIPT,
    "POST /sessions/<session_id>/ask": TRANSCRIPT,
    "POST /sessions/<session_id>/regenerate": TRANSCRIPT,
    "POST /sessions/<session_id>/sources/<int:number>/plan": TRANSCRIPT,
    "POST /v1/chat/completions": TRANSCRIPT,
    "POST /v1/responses": TRANSCRIPT,
    "PUT /api/v1/sessions/<session_id>": OWN_VIEW,
    "POST /sessions/<session_id>/settings": OWN_VIEW,
    "POST /preferences/theme": "a cookie of this browser",
    "POST /api/v1/sessions/<session_id>/compact": DERIVED,
    "DELETE /api/v1/sessions/<session_id>/context": DERIVED,
    "POST /api/v1/sessions/<session_id>/summaries": DERIVED,
    "POST /api/v1/sessions/<session_id>/summaries/correct": DERIVED,
    "POST /sessions/<session_id>/compact": DERIVED,
    "POST /sessions/<session_id>/forget": DERIVED,
    "POST /sessions/<session_id>/summaries": DERIVED,
    "POST /sessions/<session_id>/summaries/correct": DERIVED,
    "POST /api/v1/check": READS,
    "POST /api/v1/search": READS,
}
UNAUDITED_COMMANDS = {
    "ask": TRANSCRIPT,
    "chat": TRANSCRIPT,
    "audit": READS,
    "collections": READS,
    "eval": "in a folder that goes when it ends",
    "regress": "in a folder that goes when it ends",
    "models list": READS,
    "source list": READS,
    "serve": "what is done through it is written down",
    "demo": "what is done through it is written down",
    "worker": "what its jobs do is written down",
    "mcp": "its tools read, or ask",
}
UNAUDITED_JOBS = {COMPACT: DERIVED}
MARKDOWN = b"# Aero 5\n\nThe Aero 5 weighs 410 g.\n"


class Audited:
    """Says what was written down since it was asked last."""

    def __init__(self, engine):
        self._engine = engine
        self._count = 0

    def fresh(self):
        entries = list(AuditTrail(self._engine).entries())
        fresh, self._count = entries[self._count :], len(entries)
        return {entry.action for entry in fresh}


@pytest.fixture
def folder(tmp_path):
    """A source of its own for each that adds one."""

    def make(name):
        made = tmp_path / name
        made.mkdir()
        (made / "a.md").write_bytes(MARKDOWN.replace(b"Aero", name.encode()))
        return made

    return make


# ── Routes ───────────────────────────────────────────────────────────────────────────────────


class Web:
    """A server with one who may do everything."""

    def __init__(self, tmp_path):
        people = {"tokens": {"token-of-anna": "anna"}, "managers": ["anna"], "admins": ["anna"]}
        sources = {"folders": [str(tmp_path)], "private_hosts": ["127.0.0.1"]}
        auth = {"mode": "tokens", **people}
        settings = Settings(data_dir=tmp_path / "data", auth=auth, sources=sources)
        self.application = application_of(settings)
        self.app = app_of(self.application)
        self.audited = Audited(self.application.engine)
        self.client = self.app.test_client(use_cookies=False)
        self.done = {}
        self.works = True  # the jobs that it gives are done

    def call(self, rule, *ids, **request):
        """Do it, and note what it wrote down under its rule."""
        method, _, path = rule.partition(" ")
        parts = iter(ids)
        path = "/".join(next(parts) if part[:1] == "<" else part for part in path.split("/"))
        self.audited.fresh()
        headers = {"Authorization": "Bearer token-of-anna"} | request.pop("headers", {})
        answer = self.client.open(path, method=method, headers=headers, **request)
        assert answer.status_code < 400, (rule, answer.text[:600])
        if self.works:
            self.application.jobs.run_waiting()
        self.done[rule] = self.audited.fresh()
        return answer.get_json(silent=True)

    def collection(self):
        return self.call("POST /api/v1/collections", json={"name": "Manuals"})["id"]

    def document(self, name="a.md"):
        data = {"file": (io.BytesIO(MARKDOWN), name)}
        self.call("POST /api/v1/documents", data=data)
        listed = self.client.get(
            "/api/v1/documents", headers={"Authorization": "Bearer token-of-anna"}
        )
        return next(each["id"] for each in listed.get_json()["documents"] if each["name"] == name)

    def asked(self):
        session = self.application.store.create("anna", title="Talk")
        list(self.application.assistant.ask(session, "How heavy is it?"))
        return session.id


@pytest.fixture
def web(tmp_path):
    made = Web(tmp_path)
    yield made
    made.application.stop()


def change_documents(web):
    place = web.collection()
    document = web.document()
    web.call("PUT /api/v1/documents/<id>", document, json={"collection": place})
    web.call("DELETE /api/v1/documents/<id>", document)
    web.call("PUT /api/v1/collections/<id>", place, json={"name": "Prices"})
    web.call("DELETE /api/v1/collections/<id>", place)
    web.call("POST /documents", data={"file": (io.BytesIO(MARKDOWN), "b.md")})
    web.call("POST /documents/text", data={"title": "Note", "content": "The Aero 5 is red."})
    chosen = {"document": web.document("c.md"), "act": "delete", "place": ""}
    web.call("POST /documents/chosen", data=chosen)


def change_collections(web):
    web.call("POST /collections", data={"name": "Manuals"})
    held = web.application.collections.find("anna", "Manuals")
    web.call("POST /collections/<id>", held.id, data={"name": "Prices", "everybody": "read"})
    web.call("POST /collections/<id>/delete", held.id)


def change_sources(web, folder):
    place = web.collection()
    files = folder("one")
    wish = {"address": str(files), "collection": place}
    source = web.call("POST /api/v1/sources", json=wish)["id"]
    path = "/api/v1/sources/<id>"
    web.call(f"PATCH {path}", source, json={"every": 3600})
    for act in ("sync", "decline", "confirm", "undo"):
        await_answer(web.application.sources.table, source, files, act)
        web.call(f"POST {path}/{act}", source)
    web.call(f"DELETE {path}", source)
    web.call("POST /collections/<id>/sources", place, data={"address": str(folder("two"))})
    (other,) = web.application.sources.table.sources()
    web.call("POST /document-sources/<id>", other.id, data={"every": "3600"})
    web.call("POST /document-sources/<id>/<act>", other.id, "sync")
    web.call("POST /document-sources/<id>/<act>", other.id, "remove")


def await_answer(table, source_id, place, act):
    """Have its only file wait for this answer of somebody."""
    if act == "confirm":
        (place / "a.md").unlink()
    if act in ("confirm", "decline"):
        table.stand(source_id, [*Standing], Standing.ASKED)


def change_conversations(web):
    web.call("DELETE /api/v1/sessions/<id>", web.asked())
    web.call("POST /sessions/<id>/delete", web.asked())
    answer = web.client.post(
        "/v1/responses",
        json={"model": "groundnote", "input": "How heavy is it?"},
        headers={"Authorization": "Bearer token-of-anna"},
    )
    web.call("DELETE /v1/responses/<id>", answer.get_json()["id"])


def change_models(web):
    with OpenAIServer() as server:
        web.call("POST /settings/models/look", data={"base_url": server.url, "api_key": "k"})
    web.call("POST /settings/models/try", data={"model": "fake", "use": "1"})
    web.call("POST /settings/models/disconnect")


def change_logins(web):
    browser = web.app.test_client()
    for rule in ("POST /login", "POST /logins/<id>/end", "POST /login", "POST /logout"):
        page = browser.get("/login" if rule == "POST /login" else "/logins").text
        fields = {"token": "token-of-anna", "csrf_token": csrf(page)}
        path = rule.partition(" ")[2]
        if "<id>" in path:
            (login,) = web.app.extensions["groundnote-owners"].logins.of("anna")
            path = path.replace("<id>", login.id)
        web.audited.fresh()
        assert browser.post(path, data=fields).status_code == 303, rule
        web.done[rule] = web.audited.fresh()


def csrf(page):
    _, found, rest = page.partition('name="csrf_token" value="')
    return rest.partition('"')[0] if found else ""


def reread_documents(web):
    web.document("old.md")
    with web.application.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE documents SET report = '{}'")  # by older readers
    web.call("POST /documents/reread")


EXPECTED = {
    "POST /api/v1/collections": "collection.created",
    "PUT /api/v1/collections/<id>": "collection.renamed",
    "DELETE /api/v1/collections/<id>": "collection.deleted",
    "POST /api/v1/documents": "document.uploaded",
    "PUT /api/v1/documents/<id>": "document.moved",
    "DELETE /api/v1/documents/<id>": "document.deleted",
    "DELETE /api/v1/sessions/<id>": "session.deleted",
    "POST /api/v1/sources": "source.added",
    "PATCH /api/v1/sources/<id>": "source.changed",
    "DELETE /api/v1/sources/<id>": "source.removed",
    "POST /api/v1/sources/<id>/sync": "source.synced",
    "POST /api/v1/sources/<id>/confirm": "source.removals_confirmed",
    "POST /api/v1/sources/<id>/decline": "source.removals_declined",
    "POST /api/v1/sources/<id>/undo": "source.removals_undone",
    "POST /collections": "collection.created",
    "POST /collections/<id>": "right.changed",
    "POST /collections/<id>/delete": "collection.deleted",
    "POST /collections/<id>/sources": "source.added",
    "POST /document-sources/<id>": "source.changed",
    "POST /document-sources/<id>/<act>": "source.removed",
    "POST /documents": "document.uploaded",
    "POST /documents/chosen": "document.deleted",
    "POST /documents/reread": "document.stored",
    "POST /documents/sample": "document.uploaded",
    "POST /documents/text": "document.uploaded",
    "POST /login": "login",
    "POST /logins/<id>/end": "login.ended",
    "POST /logout": "logout",
    "POST /sessions/<id>/delete": "session.deleted",
    "POST /settings/models/look": "model.server",
    "POST /settings/models/try": "model.connected",
    "POST /settings/models/disconnect": "model.disconnected",
    "DELETE /v1/responses/<id>": "answer.erased",
}


def test_every_route(web, folder):
    change_documents(web)
    change_collections(web)
    change_sources(web, folder)
    change_conversations(web)
    change_models(web)
    change_logins(web)
    reread_documents(web)
    web.works = False
    web.call("POST /documents/sample")

    assert {rule: actions & {EXPECTED.get(rule)} for rule, actions in web.done.items()} == {
        rule: {action} for rule, action in EXPECTED.items()
    }
    listed = {_plain(rule) for rule in (*EXPECTED, *UNAUDITED_ROUTES)}
    assert {_plain(rule) for rule in changing(web.app)} == listed


def changing(app):
    """The routes of all methods that may change something."""
    for rule in app.url_map.iter_rules():
        for method in rule.methods - {"GET", "HEAD", "OPTIONS"}:
            yield f"{method} {rule.rule}"


def _plain(rule):
    """Whatever its parameters are called."""
    return "/".join("<>" if part[:1] == "<" else part for part in rule.split("/"))


# ── Commands ─────────────────────────────────────────────────────────────────────────────────


class Terminal:
    """Commands over a library, and what they wrote down."""

    def __init__(self, data, monkeypatch):
        self._monkeypatch = monkeypatch
        self.move(data)
        self.done = {}

    def move(self, data):
        self.data = data
        self._monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(data))

    def entries(self):
        engine = create_engine(Settings(data_dir=self.data).database_url)
        try:
            return [entry.action for entry in AuditTrail(engine).entries()]
        except OperationalError:  # no database is there yet, or an older one
            return []
        finally:
            engine.dispose()

    def run(self, command, *words):
        before = len(self.entries())
        done = CliRunner().invoke(main, [*command.split(), *map(str, words)])
        is_fine = done.exit_code == 0 or command == "doctor"  # which has more to say of a fake
        assert is_fine, (command, done.output)
        self.done[command] = set(self.entries()[before:])
        return done.stdout


@pytest.fixture
def terminal(tmp_path, monkeypatch):
    monkeypatch.setattr("rag.wiring.application.open_embedder", lambda settings: HashEmbedder())
    prepare(tmp_path / "data" / "groundnote.db")
    return Terminal(tmp_path / "data", monkeypatch)


def use_documents(terminal, tmp_path):
    (tmp_path / "a.md").write_bytes(MARKDOWN)
    terminal.run("collections add", "Manuals")
    terminal.run("collections give", "Manuals", "ben", "read")
    terminal.run("ingest", tmp_path / "a.md")
    with create_engine(Settings(data_dir=terminal.data).database_url).begin() as connection:
        connection.exec_driver_sql("UPDATE documents SET report = '{}'")  # by older readers
    terminal.run("reread")
    terminal.run("reindex")
    terminal.run("originals")
    terminal.run("doctor", "--repair", "--json")


def use_sources(terminal, folder):
    files = folder("docs")
    added = terminal.run("source add", files, "--json")
    (source,) = json.loads(added)
    table = SourceTable(create_engine(Settings(data_dir=terminal.data).database_url))
    for act in ("sync", "decline", "confirm", "undo", "remove"):
        await_answer(table, source["id"], files, act)
        terminal.run(f"source {act}", source["id"])


def use_backups(terminal, tmp_path):
    terminal.run("backup", tmp_path / "backups")
    first = terminal.data
    terminal.move(tmp_path / "again")
    terminal.run("restore", tmp_path / "backups")
    terminal.run("resume")
    (tmp_path / "older").mkdir()
    terminal.move(tmp_path / "older")
    engine = open_engine(Settings(data_dir=tmp_path / "older").database_url)
    with writing(engine, follows_keys=False) as connection:
        upgrade(connection, revisions()[0])
    engine.dispose()
    terminal.run("migrate")
    terminal.move(first)


def use_models(terminal, monkeypatch):
    offer = ModelOffer("house/judge", "1", "mit", "hub", (), 1)
    doings = {
        "look_up": lambda name: offer,
        "download": lambda offer, folder: folder.mkdir(parents=True),
        "try_out": lambda *_: None,
        "set_in_file": lambda kind, value: "settings.json",
    }
    for name, doing in doings.items():
        monkeypatch.setattr(f"rag.cli.models.{name}", doing)
    terminal.run("models add", "house/judge", "--as", "judge", "--yes")
    terminal.run("models remove", "house/judge")


def use_conversations(terminal):
    engine = create_engine(Settings(data_dir=terminal.data).database_url)
    made = SqlConversationStore(engine).create("local")
    terminal.run("sessions", "--delete", made.id)


COMMANDS = {
    "backup": "library.backed_up",
    "collections add": "collection.created",
    "collections give": "right.changed",
    "doctor": "index.repaired",
    "ingest": "document.stored",
    "migrate": "database.migrated",
    "models add": "model.added",
    "models remove": "model.removed",
    "originals": "originals.copied",
    "reindex": "index.rebuilt",
    "reread": "document.stored",
    "restore": "library.restored",
    "resume": "jobs.resumed",
    "sessions": "session.deleted",
    "source add": "source.added",
    "source confirm": "source.removals_confirmed",
    "source decline": "source.removals_declined",
    "source remove": "source.removed",
    "source sync": "source.synced",
    "source undo": "source.removals_undone",
}


def test_every_command(terminal, tmp_path, folder, monkeypatch):
    use_documents(terminal, tmp_path)
    use_sources(terminal, folder)
    use_conversations(terminal)
    use_models(terminal, monkeypatch)
    use_backups(terminal, tmp_path)

    assert {name: actions & {COMMANDS.get(name)} for name, actions in terminal.done.items()} == {
        name: {action} for name, action in COMMANDS.items()
    }
    assert {*commands(main)} == {*COMMANDS, *UNAUDITED_COMMANDS}


def commands(group, before=""):
    """The names of all, also within others."""
    for name, command in group.commands.items():
        is_group = isinstance(command, click.Group)
        if not is_group or command.invoke_without_command:
            yield before + name
        if is_group:
            yield from commands(command, f"{before}{name} ")


# ── Jobs and programs ────────────────────────────────────────────────────────────────────────


def test_every_kind_of_job(web):
    """Those that store documents, above, are written down with whom they are done for."""
    assert {*web.application.jobs._queue._handlers} == {INGEST, REREAD, SYNC, *UNAUDITED_JOBS}
    reread_documents(web)
    stored = [e for e in AuditTrail(web.application.engine).entries() if "stored" in e.action]

    assert {(entry.owner, entry.address) for entry in stored} == {("anna", "a job")}
    assert len(stored) > 1
