from io import BytesIO

import pytest


def upload(client, *files):
    return client.post(
        "/api/v1/documents", data={"file": [(BytesIO(data), name) for name, data in files]}
    )


class TestUpload:
    def test_queues_a_job_for_each_file(self, application, client):
        response = upload(client, ("a.md", b"# A"), ("folder/b.md", b"# B"))

        assert response.status_code == 202
        jobs = response.get_json()["jobs"]
        assert [job["document"] for job in jobs] == ["a.md", "folder/b.md"]
        assert application.jobs.submitted == {"a.md": b"# A", "folder/b.md": b"# B"}
        job = client.get(f"/api/v1/jobs/{jobs[0]['id']}").get_json()
        assert (job["document"], job["state"]) == ("a.md", "queued")

    def test_takes_the_others_when_some_are_refused(self, application, client):
        response = upload(client, ("../a.md", b"# A"), ("b.md", b"# B"))

        assert response.status_code == 202
        refused = response.get_json()["refused"]
        assert [file["document"] for file in refused] == ["../a.md"]
        assert list(application.jobs.submitted) == ["b.md"]

    def test_says_both_numbers_when_a_file_is_too_large(self, client, application):
        limit = application.settings.documents.model_copy(update={"max_file_mb": 0.001})
        application.settings = application.settings.model_copy(update={"documents": limit})

        response = upload(client, ("a.md", b"x" * 3000))

        assert response.status_code == 413
        assert "0.0 MB" in response.get_json()["detail"]
        assert "allows 0.001" in response.get_json()["detail"]

    def test_refuses_a_request_over_the_limit_of_all(self, app, client):
        app.config["MAX_CONTENT_LENGTH"] = 1000

        response = upload(client, ("a.md", b"x" * 3000))

        assert response.status_code == 413
        assert "at most 1,000" in response.get_json()["detail"]

    @pytest.mark.parametrize(
        "body",
        [
            pytest.param(b'--X\r\nContent-Disposition: form-data; name="file"; '
                         b'filename="a.md"\r\n\r\nx\r\n' * 2001 + b"--X--", id="files"),
            pytest.param(b'--X\r\nContent-Disposition: form-data; name="' + b"a" * 600_000,
                         id="a head"),
        ],
    )  # fmt: skip
    def test_says_what_of_a_form_is_too_much(self, client, body):
        response = client.post(
            "/api/v1/documents", data=body, content_type="multipart/form-data; boundary=X"
        )

        assert response.status_code == 413
        assert "more than 2,000 files and fields" in response.get_json()["detail"]

    @pytest.mark.parametrize(
        "sent",
        [
            pytest.param({"data": {}}, id="nothing"),
            pytest.param({"data": {"file": "a text"}}, id="a text for a file"),
            pytest.param({"data": {"collection": "1"}}, id="a collection alone"),
            pytest.param({"json": {"file": "a"}}, id="JSON"),
        ],
    )
    def test_says_how_files_are_sent_where_none_came(self, client, sent):
        form = {"content_type": "multipart/form-data"} if "data" in sent else {}
        response = client.post("/api/v1/documents", **sent, **form)

        assert response.status_code == 422
        assert "Send multipart/form-data with a part `file`" in response.get_json()["detail"]

    def test_names_a_field_that_is_not_known(self, client):
        data = {"datei": (BytesIO(b"a"), "a.md")}
        response = client.post("/api/v1/documents", data=data, content_type="multipart/form-data")

        assert response.status_code == 422
        assert response.get_json()["detail"].endswith(
            "datei is not known here. Known: file, collection."
        )


class TestLibrary:
    def test_is_listed_by_name_in_pages(self, client):
        page = client.get("/api/v1/documents?limit=1&offset=1").get_json()

        assert page["total"] == 2
        assert [document["name"] for document in page["documents"]] == ["prices.csv"]

    def test_gives_one_document_until_it_is_deleted(self, client):
        url = "/api/v1/documents/document-1"

        assert client.get(url).get_json()["name"] == "manual.md"
        assert client.delete(url).status_code == 204
        assert client.get(url).status_code == 404

    @pytest.mark.parametrize("document_id", ["nothing", "a b", "%00", "x" * 500])
    def test_knows_no_other(self, client, document_id):
        assert client.get(f"/api/v1/documents/{document_id}").status_code == 404


class TestJobs:
    def test_about_sessions_are_nobodys_business(self, client):
        assert client.get("/api/v1/jobs/job-0").status_code == 404
        assert client.get("/api/v1/jobs").get_json() == {"jobs": []}


class TestSearch:
    def test_finds_chunks(self, client):
        found = client.post("/api/v1/search", json={"query": "weight", "limit": 1}).get_json()

        assert found["query"] == "weight"
        assert found["hits"] == [
            {
                "chunk_id": "chunk-1",
                "document_id": "document-1",
                "document": "manual.md",
                "title": "Manual",
                "locator": "§ Setup 1",
                "heading_path": ["Setup"],
                "text": "The Aero 5 weighs 120 g.",
                "score": 1.0,
                "relevance": 0.9,
            }
        ]

    def test_resolves_the_query_in_its_session_first(self, application, client, session_id, asked):
        found = client.post(
            "/api/v1/search", json={"query": "and the Pro?", "session_id": session_id}
        ).get_json()

        assert found["query"] == "How heavy is the Aero 5? and the Pro?"
        assert found["is_followup"] is True
        assert application.retriever.asked[-1][0] == found["query"]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"query": ""}, 422),
            ({"query": "a", "limit": 0}, 422),
            ({"query": "a", "limit": 1000}, 422),
            ({"query": "a", "session_id": "nobody"}, 404),
            ({"query": "a", "k": 5}, 422),
            ({"query": "a" * 10_001}, 422),
        ],
    )
    def test_refuses_what_cannot_be_searched(self, client, body, status):
        assert client.post("/api/v1/search", json=body).status_code == status
