"""Nobody is told of documents that they may not read: by any route, count, error or suggestion."""

import io
import itertools
import re
import shutil
from copy import copy

import pytest

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

    def call(self, method, url, *, by, **given):
        return self.client.open(
            url, method=method, headers={"Authorization": f"Bearer token-of-{by}"}, **given
        )

    def create(self, owner, name):
        made = self.call("POST", "/api/v1/collections", by=owner, json={"name": name})
        return made.get_json()["id"]

    def upload(self, owner, name, text, collection):
        form = {"file": (io.BytesIO(text.encode()), name), "collection": collection}
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


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The same server without and with documents of somebody else."""
    made = [World(tmp_path_factory.mktemp("world"), with_ben=each) for each in (False, True)]
    yield made
    for world in made:
        world.application.stop()


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Stopped, to be copied."""
    made = World(tmp_path_factory.mktemp("first") / "home", with_ben=True)
    made.application.stop()
    return made


@pytest.fixture
def world(tmp_path, first):
    made = first.copied(tmp_path / "home")
    yield made
    made.application.stop()


def without_chance(text):
    """What two servers say alike: without ids, times and seconds."""
    text = re.sub(r'"seconds": ?[\d.e-]+', '"seconds": 0', text)
    text = re.sub(r"\b[0-9a-f]{32}\b|\b\d{16}\b|static/[0-9a-f]{12}", "ID", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+Z-]+|\d+ \w+ \d{4}, \d\d:\d\d", "WHEN", text)


QUESTIONS = [
    "Where does the Zeppelin 9 fly?",
    "zepelin crew",
    "What is the total price of all airships?",
    "How many watts has the Aero 4?",
    "Which documents mention Zeppelin?",
    "Which documents mention Aero?",
    "What is in the library?",
    "Which files could not be read?",
    "What is airships.csv about?",
    "Summarise guide.md",
    "How do I reset the lamp?",
    "How heavy is it? And the Zeppelin?",
]
READ = [
    "/",
    "/documents",
    "/documents?q=zeppelin",
    "/documents?q=lamp",
    "/sessions",
    "/search?q=zeppelin",
    "/api/v1/documents",
    "/api/v1/documents?limit=1",
    "/api/v1/jobs",
    "/api/v1/tables",
    "/api/v1/collections",
    "/api/v1/sessions",
    "/api/v1/search/messages?q=zeppelin",
    "/v1/models",
]


class TestWhatOneIsTold:
    """It is the same whether or not there are documents of somebody else."""

    @pytest.mark.parametrize("url", READ)
    def test_by_a_page_or_list(self, worlds, url):
        told = [without_chance(each.call("GET", url, by="anna").text) for each in worlds]

        assert told[0] == told[1]

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_by_an_answer(self, worlds, question):
        told = [each.ask("anna", question) for each in worlds]

        assert without_chance(str(told[0])) == without_chance(str(told[1]))

    @pytest.mark.parametrize(
        "query", ["zeppelin", "zepelin 9 crew", "lamp", "the plan of the lamp"]
    )
    def test_by_a_search(self, worlds, query):
        body = {"query": query, "limit": 50}
        told = [each.call("POST", "/api/v1/search", by="anna", json=body).text for each in worlds]

        assert without_chance(told[0]) == without_chance(told[1])

    def test_by_a_question_over_tables(self, worlds):
        body = {"question": "sum of price of airships"}
        told = [
            each.call("POST", "/api/v1/tables/query", by="anna", json=body).text for each in worlds
        ]

        assert without_chance(told[0]) == without_chance(told[1])


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


@pytest.mark.parametrize("asker", ["anna", "cleo"])
def test_every_route_says_of_others_things_what_it_says_of_nothing(worlds, asker):
    world = worlds[1]
    places = places_of(world)
    tried = 0
    for rule in world.app.url_map.iter_rules():
        names = rule.arguments & NAMES
        if not names or not rule.arguments <= places.keys():
            continue
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
            missing = {**places, **{each: re.sub(r"[1-9a-f]", "0", places[each]) for each in names}}
            told = []
            for values in (places, missing):
                url = rule.build({each: values[each] for each in rule.arguments})[1]
                given = {"json": {"content": "x", "collection": "1"}} if method != "GET" else {}
                answer = world.call(method, url, by=asker, **given)
                text = answer.text
                for each in names:
                    text = text.replace(values[each], "ID")
                told.append((answer.status_code, without_chance(text)))
            tried += 1
            assert told[0] == told[1], (method, rule.rule)
            assert told[0][0] >= 400, (method, rule.rule)
    assert tried > 40


RIGHTS = ("none", "read", "add", "write", "manage")


@pytest.mark.parametrize(
    ("right", "way"),
    [*itertools.product(RIGHTS, ["member"]), *itertools.product(RIGHTS[:3], ["everybody"])],
)
def test_a_right_gives_what_it_says_and_no_more(world, right, way):
    level = RIGHTS.index(right)
    if way == "member" and level:
        world.give(world.bens, mia=right)
    if way == "everybody":
        body = {"everybody": right}
        world.call("PUT", f"/api/v1/collections/{world.bens}", by="ben", json=body)
    bens = [each for each in world.documents("ben") if each["collection_id"] == world.bens]
    url = f"/api/v1/documents/{bens[0]['id']}"

    def status(method, path, **given):
        return world.call(method, path, by="mia", **given).status_code

    form = {"file": (io.BytesIO(b"# Mine\n\nText."), "mine.md"), "collection": world.bens}
    added = status("POST", "/api/v1/documents", data=form)
    world.application.jobs.run_waiting()
    named = [each["name"] for each in world.documents("mia")]
    assert status("GET", url) == (200 if level >= 1 else 404)
    assert ("airships.csv" in named) == (level >= 1)
    assert added == (404 if level == 0 else 403 if level == 1 else 202)
    assert ("mine.md" in named) == (level >= 2)
    body = {"name": "Other"}
    renamed = status("PUT", f"/api/v1/collections/{world.bens}", json=body)
    assert renamed == (404 if level == 0 else 200 if level == 4 else 403)
    assert status("DELETE", url) == (404 if level == 0 else 204 if level >= 3 else 403)


def test_two_collections_hold_files_of_one_name(world):
    names = [each["name"] for each in world.documents("root")]

    assert names.count("guide.md") == 2


def test_a_conversation_asks_only_what_was_chosen(world):
    world.give(world.bens, anna="read")
    question = "Where does the Zeppelin 9 fly?"

    both = world.ask("anna", question)
    lamps = world.ask("anna", question, collections=[world.annas])
    secret = world.ask("anna", question, collections=["Secret"])

    assert "Quorn" in both["content"]
    assert "Quorn" not in lamps["content"]
    assert "Quorn" in secret["content"]
    assert (
        world.call(
            "POST", "/api/v1/sessions", by="cleo", json={"collections": [world.bens]}
        ).status_code
        == 404
    )


def test_a_right_that_is_taken_away_ends_at_the_next_question(world):
    world.give(world.bens, anna="read")
    made = world.call("POST", "/api/v1/sessions", by="anna", json={}).get_json()
    url = f"/api/v1/sessions/{made['id']}"
    ask = {"content": "Where does the Zeppelin 9 fly?"}
    before = world.call("POST", f"{url}/messages", by="anna", json=ask).get_json()
    world.give(world.bens)

    after = world.call("POST", f"{url}/messages", by="anna", json=ask).get_json()
    source = before["sources"][0]
    old = world.call("GET", f"{url}/sources/{source['n']}", by="anna").get_json()
    page = world.call("GET", f"/sessions/{made['id']}/sources/{source['n']}", by="anna")

    assert "Quorn" in before["content"]
    assert "Quorn" not in after["content"]
    assert old["text"] == source["text"]  # what was cited stays readable in one's own conversation
    assert old["state"] == "deleted"
    assert "not open to you" in page.text
    document = f"/documents/{source['document_id']}"
    assert world.call("GET", document, by="anna").status_code == 404


def test_a_document_moves_without_being_embedded_again(world):
    world.give(world.bens, anna="read")
    embedded = len(world.application.embedder.embedded)
    (document,) = (each for each in world.documents("anna") if each["name"] == "goods.csv")
    body = {"collection": "1"}

    moved = world.call("PUT", f"/api/v1/documents/{document['id']}", by="anna", json=body)

    assert moved.get_json()["collection_id"] == "1"
    assert len(world.application.embedder.embedded) == embedded
    hits = world.call("POST", "/api/v1/search", by="cleo", json={"query": "Aero 4 watts"})
    assert "goods.csv" in hits.text


def test_stock_clients_choose_a_collection_by_its_model(world):
    world.give(world.bens, anna="read")
    models = [each["id"] for each in world.call("GET", "/v1/models", by="anna").get_json()["data"]]
    asked = {"messages": [{"role": "user", "content": "Where does the Zeppelin 9 fly?"}]}

    def content(**more):
        answer = world.call("POST", "/v1/chat/completions", by="anna", json=asked | more)
        return answer.get_json()["choices"][0]["message"]["content"]

    assert models == [
        "groundnote",
        "groundnote-links",
        *(f"groundnote:{name}" for name in ("Library", "Lamps", "Secret")),
    ]
    assert "Quorn" in content(model="groundnote:Secret")
    assert "Quorn" not in content(model="groundnote:Lamps")
    assert "Quorn" not in content(metadata={"collections": "Lamps, Library"})


def test_a_group_may_do_what_its_members_may(world):
    assert "guide.md" not in {each["name"] for each in world.documents("cleo")}

    world.give(world.bens, **{"group:support": "read"})

    assert "guide.md" in {each["name"] for each in world.documents("cleo")}
    assert "airships.csv" not in {each["name"] for each in world.documents("anna")}


def test_changes_of_rights_are_written_down(world):
    from rag.web.access.audit import AuditTrail

    world.give(world.bens, anna="read")
    world.give(world.bens)

    entries = [(each.owner, each.action, each.subject) for each in _entries(world, AuditTrail)]
    assert ("ben", "right.changed", f"{world.bens} anna read") in entries
    assert ("ben", "right.changed", f"{world.bens} anna none") in entries


def _entries(world, trail):
    return list(trail(world.application.engine).entries())
