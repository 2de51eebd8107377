"""A server where one person has documents that another may not read."""

import io
import re
import shutil
from copy import copy

from sqlalchemy import event

from rag.settings import Settings
from tests.applications import app_of, application_of

OWNERS = ("anna", "ben", "cleo", "mia", "root")
TOKENS = {f"token-of-{name}": name for name in OWNERS}
SECRET = "# Zeppelin plan\n\nThe Zeppelin 9 flies to Quorn in May. Its crew has 12 people.\n"
ROWS = "Airship,Price\n" + "".join(f"Zeppelin {n},{n * 10}\n" for n in range(1, 8))
PLAIN = "# Lamp guide\n\nThe lamp Aero 5 weighs 410 g. Hold the button to reset the lamp.\n"
GOODS = "Lamp,Watts\n" + "".join(f"Aero {n},{n * 3}\n" for n in range(1, 8))


class World:
    """A server with Anna's own documents, and maybe with Ben's, which are nobody else's."""

    def __init__(self, folder, *, with_ben):
        auth = {"mode": "tokens", "tokens": TOKENS, "admins": ["root"]}
        auth["managers"] = ["anna", "ben", "mia"]
        auth["groups"] = {"support": ["cleo"]}
        self.auth = auth
        self.open(folder)
        self.annas = self.create("anna", "Lamps")
        self.upload("anna", "guide.md", PLAIN, self.annas)
        self.upload("anna", "goods.csv", GOODS, self.annas)
        self.bens = self.create("ben", "Secret") if with_ben else ""
        if with_ben:
            self.upload("ben", "guide.md", SECRET, self.bens)
            self.upload("ben", "airships.csv", ROWS, self.bens)
            self.upload("ben", "broken.pdf", "no PDF", self.bens)

    def open(self, folder):
        self.folder = folder
        self.application = application_of(Settings(data_dir=folder, auth=self.auth))
        self.app = app_of(self.application)
        self.client = self.app.test_client()

    def copied(self, folder):
        """The same over a copy of its data, once it was stopped."""
        other = copy(self)
        shutil.copytree(self.folder, folder)
        other.open(folder)
        return other

    def call(self, method, url, *, by, headers=(), **given):
        sent = {"Authorization": f"Bearer token-of-{by}", **dict(headers)}
        return self.client.open(url, method=method, headers=sent, **given)

    def create(self, owner, name):
        made = self.call("POST", "/api/v1/collections", by=owner, json={"name": name})
        return made.get_json()["id"]

    def upload(self, owner, name, text, collection):
        data = text.encode() if isinstance(text, str) else text
        form = {"file": (io.BytesIO(data), name), "collection": collection}
        sent = self.call("POST", "/api/v1/documents", by=owner, data=form)
        assert sent.status_code == 202, sent.text
        self.application.jobs.run_waiting()
        return sent.get_json()["jobs"][0]["id"]

    def documents(self, owner):
        return self.call("GET", "/api/v1/documents", by=owner).get_json()["documents"]

    def ask(self, owner, question, **session):
        made = self.call("POST", "/api/v1/sessions", by=owner, json=session).get_json()
        url = f"/api/v1/sessions/{made['id']}/messages"
        return self.call("POST", url, by=owner, json={"content": question}).get_json()

    def give(self, collection, **members):
        body = {"members": members}
        given = self.call("PUT", f"/api/v1/collections/{collection}", by="ben", json=body)
        assert given.status_code == 200, given.text


def url_of(app, rule, places):
    """A path of a rule, with these values for its names, or 1."""
    with app.test_request_context():
        known = {name: places.get(name, "1") for name in rule.arguments}
        return app.url_for(rule.endpoint, **known)


def without_chance(text):
    """What two servers say alike: without ids, times and seconds."""
    text = re.sub(r'"seconds": ?[\d.e-]+', '"seconds": 0', text)
    text = re.sub(r"\b[0-9a-f]{32}\b|\b\d{16}\b|static/[0-9a-f]{12}", "ID", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+Z-]+|\d+ \w+ \d{4}, \d\d:\d\d", "WHEN", text)


def places_of(world):
    """What Ben has that a path may name: his own ids, by the name in the path."""
    document = world.documents("ben")[0]
    tables = world.call("GET", "/api/v1/tables", by="ben").get_json()["tables"]
    jobs = world.call("GET", "/api/v1/jobs", by="ben").get_json()["jobs"]
    world.ask("ben", "Where does the Zeppelin 9 fly?")
    session = world.call("GET", "/api/v1/sessions", by="ben").get_json()["sessions"][0]
    return {
        "document_id": document["id"],
        "table_id": tables[0]["id"],
        "job_id": jobs[0]["id"],
        "session_id": session["id"],
        "collection_id": world.bens,
        "number": "1",
        "n": "1",
        "index": "1",
        "ending": "csv",
    }


NAMES = {"document_id", "table_id", "job_id", "session_id", "collection_id"}


def statements_of(world, method, url, **given):
    """The answer to a request, and its SQL without values."""
    told = []

    def listen(_connection, _cursor, statement, *_rest):
        told.append(statement)

    event.listen(world.application.engine, "before_cursor_execute", listen)
    try:
        answer = world.call(method, url, **given)
    finally:
        event.remove(world.application.engine, "before_cursor_execute", listen)
    return answer, told
