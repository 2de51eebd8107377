"""Nobody is told of documents that they may not read: by any route, count, error or suggestion."""

import io
import itertools
import math
import re

import pytest

from rag.wiring import application
from tests.web.two_owners import NAMES, places_of, statements_of, without_chance

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


@pytest.mark.parametrize("asker", ["anna", "cleo"])
def test_every_route_says_of_others_things_what_it_says_of_nothing(worlds, asker, monkeypatch):
    """In the same steps, so that no clock tells one from the other either.

    Whatever is asked, a process looks once a second for a model connected meanwhile: not here.
    """
    monkeypatch.setattr(application, "CONNECTION_LOOK_SECONDS", math.inf)
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
                answer, statements = statements_of(world, method, url, by=asker, **given)
                text = answer.text
                for each in names:
                    text = text.replace(values[each], "ID")
                told.append((answer.status_code, without_chance(text), statements))
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


def test_a_conversation_asks_only_what_was_chosen(world):
    world.give(world.bens, anna="read")
    question = "Where does the Zeppelin 9 fly?"

    both = world.ask("anna", question)
    lamps = world.ask("anna", question, collections=[world.annas])
    secret = world.ask("anna", question, collections=["Secret"])

    assert "Quorn" in both["content"]
    assert "Quorn" not in lamps["content"]
    assert "Quorn" in secret["content"]
    for body in ({"collections": [world.bens]}, {"knowledge_base_id": world.bens}):
        assert world.call("POST", "/api/v1/sessions", by="cleo", json=body).status_code == 404
    config = {
        "enabled": True,
        "max_tokens": 8192,
        "compression_strategy": "sliding_window",
        "recent_message_count": 20,
    }
    body = {"knowledge_base_id": world.annas, "context_config": config}
    begun = world.call("POST", "/api/v1/sessions", by="anna", json=body)
    assert (begun.status_code, begun.json["context_config"]) == (201, config | {"share": []})
    assert begun.json["collections"] == [world.annas]


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
    from rag.db.audit_trail import AuditTrail

    world.give(world.bens, anna="read")
    world.give(world.bens)

    entries = [(each.owner, each.action, each.subject) for each in _entries(world, AuditTrail)]
    assert ("ben", "right.changed", f"{world.bens} anna read") in entries
    assert ("ben", "right.changed", f"{world.bens} anna none") in entries


def _entries(world, trail):
    return list(trail(world.application.engine).entries())
