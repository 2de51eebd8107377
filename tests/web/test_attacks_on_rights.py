"""What somebody tries who is known here, but is after documents and rights of others."""

import io
from urllib.parse import urljoin, urlsplit

import pytest

from rag.web.access.security import PUBLIC_ENDPOINTS
from tests.web.two_owners import SECRET, url_of, without_chance


@pytest.fixture(scope="module")
def shared(tmp_path_factory, first):
    """For attempts that change nothing: none of them may."""
    made = first.copied(tmp_path_factory.mktemp("shared") / "home")
    yield made
    made.application.stop()


class TestNamesLikeThoseOfOthers:
    def test_lead_to_ones_own(self, world):
        mias = world.create("mia", "Secret")
        world.upload("mia", "note.md", "# Note\n\nThe kite weighs 9 g.\n", "Secret")

        listed = world.call("GET", "/api/v1/documents?collection=Secret", by="mia").get_json()
        assert [each["collection_id"] for each in listed["documents"]] == [mias]

    @pytest.mark.parametrize("name", ["1", "{annas}"])
    def test_that_are_ids_of_others_catch_nothing(self, world, name):
        annas = world.annas
        made = world.create("mia", name.format(annas=annas))
        body = {"members": {"anna": "manage"}}
        world.call("PUT", f"/api/v1/collections/{made}", by="mia", json=body)

        world.upload("anna", "own.md", "# Own\n\nThe lamp is mine.\n", annas)

        listed = world.call("GET", f"/api/v1/documents?collection={made}", by="mia").get_json()
        assert listed["documents"] == []

    @pytest.mark.parametrize("named", ["Secret", "secret", " SECRET ", "{bens}"])
    @pytest.mark.parametrize("way", ["upload", "list", "ask", "search", "model", "page"])
    def test_are_unknown_to_whoever_may_not_read_them(self, shared, named, way):
        named = named.format(bens=shared.bens)
        form = {"file": (io.BytesIO(b"# A"), "a.md"), "collection": named}
        messages = [{"role": "user", "content": "a"}]
        calls = {
            "upload": ("POST", "/api/v1/documents", {"data": form}),
            "list": ("GET", "/api/v1/documents", {"query_string": {"collection": named}}),
            "ask": ("POST", "/api/v1/sessions", {"json": {"collections": [named]}}),
            "search": ("POST", "/api/v1/search", {"json": {"query": "a", "collections": [named]}}),
            "model": (
                "POST",
                "/v1/chat/completions",
                {"json": {"model": f"groundnote:{named}", "messages": messages}},
            ),
            "page": ("GET", "/documents", {"query_string": {"collection": named}}),
        }
        method, url, given = calls[way]

        assert shared.call(method, url, by="anna", **given).status_code == 404


class TestARightThatIsTaken:
    def test_ends_the_forms_of_an_open_page(self, world):
        world.give(world.bens, anna="write")
        document = next(
            each for each in world.documents("anna") if each["collection_id"] == world.bens
        )
        world.give(world.bens, anna="read")

        moved = {"act": "move", "to": world.annas, "document": document["id"], "place": ""}
        deleted = {"act": "delete", "document": document["id"], "place": ""}
        renamed = {"name": "Mine", "everybody": "read", "new_member": "anna", "new_right": "manage"}
        added = {"file": (io.BytesIO(b"# A"), "a.md")}
        answers = [
            world.call("POST", "/documents/chosen", by="anna", data=moved),
            world.call("POST", "/documents/chosen", by="anna", data=deleted),
            world.call("POST", f"/collections/{world.bens}", by="anna", data=renamed),
            world.call("POST", f"/collections/{world.bens}/delete", by="anna"),
            world.call("POST", f"/documents?collection={world.bens}", by="anna", data=added),
            world.call("DELETE", f"/api/v1/documents/{document['id']}", by="anna"),
        ]

        assert {each.status_code for each in answers} == {403}

    def test_ends_an_upload_that_waits(self, world):
        world.give(world.bens, anna="add")
        form = {"file": (io.BytesIO(b"# Late\n\nToo late."), "late.md"), "collection": world.bens}
        sent = world.call("POST", "/api/v1/documents", by="anna", data=form)
        assert sent.status_code == 202
        world.give(world.bens)

        world.application.jobs.run_waiting()

        job = sent.get_json()["jobs"][0]["id"]
        told = world.call("GET", f"/api/v1/jobs/{job}", by="anna").get_json()
        assert told["state"] == "failed"
        assert "Zeppelin" not in told["error"]
        assert "late.md" not in {each["name"] for each in world.documents("ben")}

    def test_leaves_neither_tables_nor_marked_rows(self, world):
        world.give(world.bens, anna="read")
        session = world.ask("anna", "What is the total price of all airships?")
        tables = world.call("GET", "/api/v1/tables", by="anna").get_json()["tables"]
        table = next(each for each in tables if each["document"] == "airships.csv")
        number = session["citations"][0]["n"]
        world.give(world.bens)

        url = f"/sessions/{session['session_id']}/sources/{number}"
        again = world.call("POST", f"{url}/plan", by="anna")
        page = world.call("GET", url, by="anna")
        body = {"plan": {"table": table["id"]}, "session_id": session["session_id"]}
        asked = world.call("POST", "/api/v1/tables/query", by="anna", json=body)
        rows = world.call(
            "GET", f"/tables/{table['id']}?session={session['session_id']}&n={number}", by="anna"
        )

        assert (again.status_code, asked.status_code, rows.status_code) == (404, 404, 404)
        assert page.status_code == 200  # the snapshot
        assert "Zeppelin 3" not in page.text

    def test_ends_what_is_told_of_changes(self, world):
        """What was quoted stays quoted; what became of its document since is not said."""
        shown = []
        for text in (SECRET, SECRET.replace("Quorn", "Ulm")):
            world.give(world.bens, anna="read")
            session = world.ask("anna", "Where does the Zeppelin 9 fly?")["session_id"]
            world.give(world.bens)
            world.upload("ben", "guide.md", text, world.bens)
            for question in ("What does [1] say now?", "And where does it fly?"):
                body = {"content": question}
                url = f"/api/v1/sessions/{session}/messages"
                assert "Ulm" not in world.call("POST", url, by="anna", json=body).text
            shown.append(pages_of(world, session))
            world.upload("ben", "guide.md", SECRET, world.bens)

        assert shown[0] == shown[1]

    def test_is_not_asked_again_for_an_old_answer(self, world):
        world.give(world.bens, anna="read")
        told = world.ask("anna", "Where does the Zeppelin 9 fly?")
        assert "Quorn" in told["content"]
        world.give(world.bens)

        url = f"/api/v1/sessions/{told['session_id']}/messages/{told['index']}/regenerate"
        again = world.call("POST", url, by="anna", json={}).get_json()
        assert "Quorn" not in again["content"]

    def test_and_a_collection_that_went_leave_a_conversation_nothing_to_ask(self, world):
        brief = world.create("anna", "Brief")
        made = world.call("POST", "/api/v1/sessions", by="anna", json={"collections": [brief]})
        session = made.get_json()["id"]
        world.call("DELETE", f"/api/v1/collections/{brief}", by="anna")

        url = f"/api/v1/sessions/{session}/messages"
        body = {"content": "How much does the Aero 5 weigh?"}
        assert "410 g" not in world.call("POST", url, by="anna", json=body).text


def pages_of(world, session):
    """What Anna is shown of a conversation, the lists of others beside it left out."""
    told = []
    for path in (f"/sessions/{session}{each}" for each in ("", "/print", "/sources", "/sources/1")):
        page = world.call("GET", path, by="anna").text
        told.append(without_chance(page.partition("<main")[2]))
    sources = world.call("GET", f"/api/v1/sessions/{session}/sources", by="anna").text
    return [*told, without_chance(sources)]


def test_a_brought_source_is_no_question_whether_there_is_such_a_document(world):
    found = world.call("POST", "/api/v1/search", by="ben", json={"query": "Zeppelin 9"})
    hit = found.get_json()["hits"][0]
    document = next(each for each in world.documents("ben") if each["name"] == "guide.md")
    shown = []
    for document_id, chunk_id in ((document["id"], hit["chunk_id"]), ("0" * 32, "1" * 32)):
        session = world.call("POST", "/api/v1/sessions", by="anna", json={}).get_json()["id"]
        source = {"n": 1, "text": hit["text"], "document": "guide.md", "title": "Zeppelin plan"}
        said = [("user", "Where?"), ("assistant", "It flies to Quorn [1].")]
        body = {
            "messages": [{"role": role, "content": content} for role, content in said],
            "sources": [{**source, "document_id": document_id, "chunk_id": chunk_id}],
        }
        sent = world.call("POST", f"/api/v1/sessions/{session}/import", by="anna", json=body)
        assert sent.status_code == 201, sent.text
        shown.append(pages_of(world, session))

    assert shown[0] == shown[1]


def test_one_file_of_two_people_is_two_documents(world):
    world.upload("anna", "guide.md", SECRET, world.annas)
    bens = next(each for each in world.documents("ben") if each["name"] == "guide.md")
    assert world.call("DELETE", f"/api/v1/documents/{bens['id']}", by="ben").status_code == 204

    for who, is_there in (("anna", True), ("ben", False)):
        body = {"query": "Zeppelin crew"}
        hits = world.call("POST", "/api/v1/search", by=who, json=body).get_json()["hits"]
        assert any("Quorn" in each["text"] for each in hits) == is_there


TALKS = [
    ["How much does the lamp Aero 5 weigh?", "And the Zeppelin 9?", "What about its crew?"],
    ["total watts of all lamps", "only the Aero 3", "and the Zeppelin 3", "by airship"],
    ["What is in the collection Secret?", "Which documents are newest?", "Who may read it?"],
]


@pytest.mark.parametrize("talk", TALKS)
def test_a_long_conversation_and_its_summary_know_nothing_of_others(worlds, talk):
    told = []
    for world in worlds:
        session = world.call("POST", "/api/v1/sessions", by="anna", json={}).get_json()["id"]
        url = f"/api/v1/sessions/{session}"
        asked = [("POST", f"{url}/messages", {"content": each}) for each in talk * 2]
        asked += [("POST", f"{url}/compact", {}), ("GET", f"{url}/context", None)]
        answers = [
            world.call(method, path, by="anna", json=body).text for method, path, body in asked
        ]
        told.append([*map(without_chance, answers), *pages_of(world, session)])

    assert told[0] == told[1]


class TestTables:
    @pytest.mark.parametrize(
        "column",
        [
            "Lamp\") FROM read_csv('/etc/passwd') --",
            "(SELECT max(Price) FROM airships)",
            "rowid; DROP TABLE x",
            "../airships",
        ],
    )
    def test_are_asked_by_their_own_columns_only(self, shared, column):
        table = shared.call("GET", "/api/v1/tables", by="anna").get_json()["tables"][0]["id"]
        for plan in (
            {"table": table, "columns": [column]},
            {"table": table, "measures": [{"kind": "sum", "column": column}]},
            {"table": table, "order": [{"by": column}]},
            {"table": table, "filters": [{"column": column, "op": "is", "values": ["a"]}]},
            {"table": table, "group": [{"column": column}], "measures": [{"kind": "count"}]},
        ):
            response = shared.call("POST", "/api/v1/tables/query", by="anna", json={"plan": plan})

            assert response.status_code in (400, 422), (plan, response.text)
            assert "Zeppelin" not in response.text
            assert "root:" not in response.text

    def test_of_others_are_not_joined_by_a_name(self, world):
        for question in (
            "sum of Price in airships.csv",
            "lamps joined with airships by name",
            "How many rows has airships.csv?",
        ):
            told = world.ask("anna", question)
            assert "Zeppelin" not in str(told).replace(question, "")
            assert "280" not in told["content"]


SUGGESTING = [
    "Zepelin 9 crew",
    "zeppelim",
    "quron",
    "airshps",
    "zepp",
    "How heavy is the Zeppelyn 9?",
]


@pytest.mark.parametrize("words", SUGGESTING)
def test_a_word_of_others_is_not_suggested(worlds, words):
    told = []
    for each in worlds:
        found = each.call("POST", "/api/v1/search", by="anna", json={"query": words, "limit": 50})
        page = each.call("GET", "/documents", by="anna", query_string={"q": words})
        answer = str(each.ask("anna", words))
        told.append([without_chance(text) for text in (found.text, page.text, answer)])

    assert told[0] == told[1]


def logged_in(app, name):
    client = app.test_client()
    client.post("/login", data={"token": f"token-of-{name}"})
    return client


class TestForms:
    def test_each_needs_the_token_of_its_own_reader(self, token_app):
        anna, ben = logged_in(token_app, "anna"), logged_in(token_app, "ben")
        session = anna.post("/api/v1/sessions", json={}).get_json()["id"]
        page = ben.get("/").text
        bens_token = page.partition('name="csrf_token" value="')[2].partition('"')[0]
        assert bens_token
        places = {"session_id": session, "document_id": "document-1", "collection_id": "1"}
        checked = 0
        for rule in token_app.url_map.iter_rules():
            methods = rule.methods - {"GET", "HEAD", "OPTIONS"}
            if not methods or rule.endpoint in PUBLIC_ENDPOINTS:
                continue
            url = url_of(token_app, rule, places)
            for method in methods:
                for kind in (
                    "application/x-www-form-urlencoded",
                    "multipart/form-data; boundary=a",
                    "text/plain",
                    "Text/Plain; charset=utf-8",
                ):
                    for token in ("", bens_token):
                        headers = {"X-CSRF-Token": token} if token else {}
                        sent = anna.open(
                            url, method=method, data=b"a=1", content_type=kind, headers=headers
                        )
                        assert sent.status_code == 403, (rule.rule, method, kind)
                        checked += 1
        assert checked > 200

    def test_nothing_is_changed_by_looking(self, token_app):
        """No GET acts: links and pictures of other sites send cookies along."""
        changing = {
            rule.endpoint
            for rule in token_app.url_map.iter_rules()
            if "GET" in rule.methods and rule.methods & {"POST", "PUT", "DELETE"}
        }

        assert not changing

    def test_another_site_logs_nobody_in(self, token_app):
        sent = token_app.test_client().post(
            "/login",
            data={"token": "token-of-ben"},
            headers={"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        )

        assert sent.status_code == 403
        assert "Set-Cookie" not in sent.headers


class TestCookies:
    def test_that_were_there_before_a_login_are_worth_nothing_after_it(self, token_app):
        client = token_app.test_client()
        client.set_cookie("groundnote", "fixed-by-a-stranger")
        page = client.get("/login").text
        token = page.partition('name="csrf_token" value="')[2].partition('"')[0]
        sent = client.post("/login", data={"token": "token-of-anna", "csrf_token": token})
        stranger = token_app.test_client()
        stranger.set_cookie("groundnote", "fixed-by-a-stranger")

        assert sent.status_code == 303
        assert client.get_cookie("groundnote").value != "fixed-by-a-stranger"
        assert stranger.get("/api/v1/sessions").status_code == 401


EVIL = [
    "/\\evil.example",
    "//evil.example",
    "///evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "\\\\evil.example",
    "https:evil.example",
    "javascript:alert(1)",
    " //evil.example",
    "/%0d%0aSet-Cookie:a=b",
    "/\u2028/evil.example",
    "／／evil.example",
    "/.//evil.example",
    "/;//evil.example",
    "http://localhost@evil.example/",
]


@pytest.mark.parametrize("wanted", EVIL)
def test_a_login_leads_to_no_other_site(token_app, wanted):
    sent = token_app.test_client().post("/login", data={"token": "token-of-anna", "next": wanted})

    place = sent.headers["Location"]
    assert urlsplit(urljoin("http://localhost/login", place)).netloc == "localhost"
    assert not place.replace("\\", "/").startswith("//")
    assert "Set-Cookie" not in sent.headers or "a=b" not in str(sent.headers.getlist("Set-Cookie"))


class TestCaches:
    def test_keep_nothing_that_belongs_to_somebody(self, token_app):
        anna = logged_in(token_app, "anna")
        session = anna.post("/api/v1/sessions", json={}).get_json()["id"]
        anna.post(f"/api/v1/sessions/{session}/messages", json={"content": "How heavy is it?"})
        places = {
            "session_id": session,
            "document_id": "document-1",
            "collection_id": "1",
            "index": 1,
        }
        for rule in token_app.url_map.iter_rules():
            if "GET" not in rule.methods or rule.endpoint == "static":
                continue
            url = url_of(token_app, rule, places)
            for headers in ({}, {"Accept": "text/html"}, {"Accept": "text/event-stream"}):
                told = anna.get(url, headers=headers)
                told.get_data()
                assert "no-store" in told.headers["Cache-Control"], rule.rule
                assert "ETag" not in told.headers, rule.rule
                assert "Last-Modified" not in told.headers, rule.rule

    def test_are_not_told_that_nothing_changed(self, token_app):
        anna, ben = logged_in(token_app, "anna"), logged_in(token_app, "ben")
        anna.post("/api/v1/sessions", json={"title": "Annas"})
        told = ben.get("/api/v1/sessions", headers={"If-None-Match": "*"})

        assert (told.status_code, told.get_json()["sessions"]) == (200, [])
