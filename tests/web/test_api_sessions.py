import pytest


class TestSessions:
    def test_are_created_with_the_defaults_of_the_settings(self, client):
        response = client.post("/api/v1/sessions", json={})

        assert response.status_code == 201
        session = response.get_json()
        assert session["message_count"] == 0
        assert session["context_config"] == {
            "enabled": True,
            "max_tokens": None,
            "compression_strategy": "smart",
            "recent_message_count": 10,
            "share": [],
        }

    def test_keep_what_a_change_leaves_out(self, client, session_id):
        url = f"/api/v1/sessions/{session_id}"
        client.put(url, json={"title": "Weights", "context_config": {"max_tokens": 4000}})

        changed = client.put(url, json={"context_config": {"recent_message_count": 4}}).get_json()

        assert changed["title"] == "Weights"
        assert changed["context_config"]["max_tokens"] == 4000
        assert changed["context_config"]["recent_message_count"] == 4

    def test_take_the_models_own_window_again_with_null(self, client, session_id):
        url = f"/api/v1/sessions/{session_id}"
        client.put(url, json={"context_config": {"max_tokens": 4000}})

        changed = client.put(url, json={"context_config": {"max_tokens": None}}).get_json()

        assert changed["context_config"]["max_tokens"] is None

    @pytest.mark.parametrize(
        "config",
        [
            pytest.param({"compression_strategy": "magic"}, id="unknown strategy"),
            pytest.param({"max_tokens": "4000"}, id="text for a number"),
            pytest.param({"max_tokens": -1}, id="negative window"),
            pytest.param({"recent_message_count": -2}, id="negative count"),
            pytest.param({"enabled": "yes"}, id="text for a truth value"),
            pytest.param([], id="a list"),
        ],
    )
    def test_refuse_a_wrong_configuration(self, client, session_id, config):
        response = client.put(f"/api/v1/sessions/{session_id}", json={"context_config": config})

        assert response.status_code == 422
        assert response.get_json()["errors"][0]["field"].startswith("context_config")

    @pytest.mark.parametrize(
        ("config", "came"),
        [
            pytest.param(5, "5 came", id="a number"),
            pytest.param(["a"], "a list came", id="a list"),
            pytest.param("a" * 400, "a text of 400 characters came", id="a long text"),
        ],
    )
    def test_refuse_what_does_not_fit_and_say_what_came(self, client, config, came):
        response = client.post("/api/v1/sessions", json={"context_config": config})

        assert response.status_code == 422
        assert response.get_json()["detail"].endswith(came)

    @pytest.mark.parametrize(
        ("body", "came"), [("null", "null"), ("[1]", "a list"), ('"a"', '"a"')], ids=str
    )
    def test_refuse_a_body_that_is_no_object_and_say_what_it_is(self, client, body, came):
        response = client.post("/api/v1/sessions", data=body, content_type="application/json")

        assert response.status_code == 400
        assert response.get_json()["detail"].startswith(f"The body is {came}; expected a JSON")

    def test_refuse_unknown_fields_and_list_the_known_ones(self, client):
        response = client.post("/api/v1/sessions", json={"context_config": {"tokens": 5}})

        assert response.status_code == 422
        detail = response.get_json()["detail"]
        assert "tokens is not known here" in detail
        assert "recent_message_count" in detail

    def test_are_listed_in_pages(self, client):
        made = {client.post("/api/v1/sessions").get_json()["id"] for _ in range(3)}

        first = client.get("/api/v1/sessions?limit=2").get_json()
        second = client.get(f"/api/v1/sessions?limit=2&offset={first['next_offset']}").get_json()

        assert len(first["sessions"]) == 2
        assert second["next_offset"] is None
        assert {s["id"] for s in first["sessions"] + second["sessions"]} == made

    def test_are_gone_once_deleted(self, client, session_id):
        url = f"/api/v1/sessions/{session_id}"

        assert client.delete(url).status_code == 204

        assert client.get(url).status_code == 404
        assert client.delete(url).status_code == 404


class TestSources:
    def test_are_listed_by_number_with_their_state(self, client, session_id, asked):
        sources = client.get(f"/api/v1/sessions/{session_id}/sources").get_json()["sources"]

        assert [source["n"] for source in sources] == [1, 2]
        assert sources[0]["document"] == "manual.md"
        assert sources[0]["state"] == "current"

    def test_say_when_their_document_is_gone(self, client, session_id, asked):
        client.delete("/api/v1/documents/document-1")

        source = client.get(f"/api/v1/sessions/{session_id}/sources/1").get_json()

        assert source["state"] == "deleted"
        assert source["text"] == "The Aero 5 weighs 120 g."

    @pytest.mark.parametrize(
        ("number", "status"), [("3", 404), ("0", 422), ("x", 422), ("9" * 30, 422)]
    )
    def test_say_so_when_there_is_none(self, client, session_id, asked, number, status):
        response = client.get(f"/api/v1/sessions/{session_id}/sources/{number}")

        assert response.status_code == status
        assert response.mimetype == "application/problem+json"


class TestSearch:
    def test_finds_messages_of_the_session(self, client, session_id, asked):
        found = client.get(f"/api/v1/sessions/{session_id}/search?q=HEAVY").get_json()

        assert found["total"] == 1
        match = found["found"][0]
        assert match["snippet"][match["match_start"] : match["match_end"]] == "heavy"

    def test_finds_messages_of_all_sessions(self, client, session_id, asked):
        found = client.get("/api/v1/search/messages?q=120 g").get_json()

        assert [(match["session_id"], match["index"]) for match in found["found"]] == [
            (session_id, 1)
        ]

    @pytest.mark.parametrize("query", ["", "q=", "q=%20", "q=a&limit=0", "q=a&limit=x", "q=a&x=1"])
    def test_refuses_a_wrong_query(self, client, session_id, query):
        response = client.get(f"/api/v1/sessions/{session_id}/search?{query}")

        assert response.status_code == 422


class TestExport:
    def test_as_markdown_holds_each_citation_as_a_footnote(self, client, session_id, asked):
        response = client.get(f"/api/v1/sessions/{session_id}/export?format=markdown")

        text = response.get_data(as_text=True)
        assert response.mimetype == "text/markdown"
        assert "It weighs 120 g[^1]" in text.replace(" [^1]", "[^1]")
        assert "[^1]: [1] Manual, § Setup 1 (manual.md)" in text
        assert "[^2]" not in text
        assert 'filename="how-heavy-is-the-aero-5.md"' in response.headers["Content-Disposition"]

    def test_refuses_an_unknown_format(self, client, session_id):
        response = client.get(f"/api/v1/sessions/{session_id}/export?format=pdf")

        assert response.status_code == 422
        assert "markdown" in response.get_json()["detail"]


class TestBranches:
    @pytest.fixture
    def talk(self, client, session_id):
        for question in ("First?", "Second?", "Third?"):
            client.post(f"/api/v1/sessions/{session_id}/messages", json={"content": question})
        return f"/api/v1/sessions/{session_id}"

    def test_an_earlier_question_is_edited_in_a_branch(self, client, session_id, talk):
        response = client.post(f"{talk}/branches", json={"index": 2})
        branch = response.get_json()
        url = f"/api/v1/sessions/{branch['id']}"
        answer = client.post(f"{url}/messages", json={"content": "Another?"}).get_json()

        assert response.status_code == 201
        assert (branch["parent"], branch["branch_index"]) == (session_id, 2)
        assert answer["index"] == 3
        said = client.get(f"{url}/messages").get_json()["messages"]
        before = client.get(f"{talk}/messages").get_json()["messages"]
        assert [each["content"] for each in said[:3]] == [
            before[0]["content"],
            before[1]["content"],
            "Another?",
        ]
        assert len(before) == 6
        versions = client.get(f"{talk}/branches").get_json()["versions"]
        assert [(v["index"], v["position"]) for v in versions] == [(2, 0)]
        assert [each["id"] for each in versions[0]["sessions"]] == [session_id, branch["id"]]

    def test_only_a_question_can_be_edited(self, client, talk):
        response = client.post(f"{talk}/branches", json={"index": 3})

        assert response.status_code == 400
        assert "message 2" in response.get_json()["detail"]

    def test_an_export_says_what_it_is_a_version_of(self, client, session_id, talk):
        branch = client.post(f"{talk}/branches", json={"index": 4}).get_json()["id"]

        exported = client.get(f"/api/v1/sessions/{branch}/export?format=json").get_json()
        markdown = client.get(f"/api/v1/sessions/{branch}/export?format=markdown").text

        assert exported["session"]["parent"] == session_id
        assert exported["session"]["branch_index"] == 4
        assert "From question 3 on, this is another version" in markdown
