"""The JSON API and the pages of tables."""

import html
import io
import re
from xml.etree import ElementTree

import openpyxl
import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import app_of, application_of

SALES = (
    "Product,Region,Quarter,Revenue\n"
    "Aero 5,North,Q1,100.50\nAero 5,South,Q2,200.00\nAero 6,North,Q1,50.00\n=cmd(),South,Q1,1.00\n"
)
MARKED = re.compile(r'<tr\b[^>]*class="is-marked"')


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    list(application.ingestion.ingest([IncomingFile.from_bytes("sales.csv", SALES.encode())]))
    yield application
    application.stop()


@pytest.fixture
def client(application):
    return app_of(application).test_client()


@pytest.fixture
def session_id(client):
    return client.post("/api/v1/sessions", json={}).json["id"]


def ask(client, session_id, question):
    url = f"/api/v1/sessions/{session_id}/messages"
    return client.post(url, json={"content": question}).json


def compute(client, session_id, question):
    """The number of the result: the one reading is offered, and then taken by its words."""
    (offer,) = ask(client, session_id, question)["offers"]
    (source,) = ask(client, session_id, offer["label"])["sources"]
    return source["n"]


class TestTheApi:
    def test_lists_tables_with_their_columns(self, client):
        listed = client.get("/api/v1/tables").json

        assert listed["total"] == 1
        names = [(c["name"], c["type"]) for c in listed["tables"][0]["columns"]]
        assert names[-1] == ("Revenue", "number")

    def test_gives_rows_paged_and_searched(self, client):
        table_id = client.get("/api/v1/tables").json["tables"][0]["id"]

        page = client.get(f"/api/v1/tables/{table_id}?limit=2").json
        assert [row[0] for row in page["rows"]] == [2, 3]
        assert page["has_more"]
        found = client.get(f"/api/v1/tables/{table_id}?q=aero north").json
        assert [row[1] for row in found["rows"]] == ["Aero 5", "Aero 6"]

    def test_answers_a_question_and_a_plan_alike(self, client):
        asked = client.post("/api/v1/tables/query", json={"question": "revenue by region"}).json
        planned = client.post("/api/v1/tables/query", json={"plan": asked["plan"]}).json

        assert asked["rows"] == [["North", 150.5], ["South", 201.0]]
        assert planned["rows"] == asked["rows"]
        assert "SUM" in asked["sql"]

    def test_takes_the_context_of_a_session_and_numbers_the_result(self, client, session_id):
        ask(client, session_id, "total revenue in Q1")

        body = {"question": "what about Q2?", "session_id": session_id}
        result = client.post("/api/v1/tables/query", json=body).json

        assert result["rows"] == [[200.0]]
        assert client.get(f"/api/v1/sessions/{session_id}/sources/{result['source']}").json

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"question": "revenue by region", "plan": {}},
            {"plan": {"table": ""}},
            {"plan": {"table": "nowhere"}},
            {"plan": {"table": "ID", "columns": ["No such"]}},
            {"plan": {"table": "ID", "measures": [{"kind": "sum", "column": "Product"}]}},
            {"plan": {"table": "ID", "limit": 10**9}},
            {"plan": {"table": "ID", "filters": [{"column": "Product", "op": "; DROP"}]}},
            {"plan": {"table": "ID", "filters": "x"}},
            {"plan": {"table": "ID", "filters": [{"column": "Revenue", "op": "above"}]}},
            {
                "plan": {
                    "table": "ID",
                    "filters": [{"column": "measure 1", "op": "contains", "value": "1"}],
                    "measures": [{"kind": "count"}],
                }
            },
            {"plan": {"table": "ID", "filters": [{"column": "Product", "op": "contains"}]}},
            {"plan": {"table": "ID", "filters": [{"column": "#", "op": "is", "value": "x"}]}},
            {
                "plan": {
                    "table": "ID",
                    "filters": [{"column": "Revenue", "op": "above", "value": "much"}],
                }
            },
            {"question": "what is love?"},
        ],
    )
    def test_refuses_what_no_table_can_say(self, client, body):
        table_id = client.get("/api/v1/tables").json["tables"][0]["id"]
        if body.get("plan", {}).get("table") == "ID":
            body = {"plan": body["plan"] | {"table": table_id}}

        refused = client.post("/api/v1/tables/query", json=body)

        assert 400 <= refused.status_code < 500
        assert refused.json["detail"]

    def test_values_with_sql_in_them_are_values(self, client):
        table_id = client.get("/api/v1/tables").json["tables"][0]["id"]
        filters = [{"column": "Product", "values": ["x' OR '1'='1"]}]
        plan = {"table": table_id, "filters": filters, "measures": [{"kind": "count"}]}

        assert client.post("/api/v1/tables/query", json={"plan": plan}).json["rows"] == [[0]]


class TestThePages:
    def test_show_the_result_and_how_it_came(self, client, session_id):
        number = compute(client, session_id, "revenue by product")

        conversation = client.get(f"/sessions/{session_id}").text
        assert '<td class="is-figure">300.50</td>' in conversation
        assert "<svg" in conversation
        page = client.get(f"/sessions/{session_id}/sources/{number}").text
        assert "total Revenue by Product" in page
        assert "GROUP BY" in page
        assert "The rows behind it" in page

    def test_downloads_run_nothing(self, client, session_id):
        number = compute(client, session_id, "revenue by product")
        url = f"/sessions/{session_id}/sources/{number}"

        text = client.get(f"{url}.csv").get_data(as_text=True)
        assert "'=cmd(),1.0" in text
        book = openpyxl.load_workbook(io.BytesIO(client.get(f"{url}.xlsx").data))
        cells = {cell.value: cell.data_type for row in book["Result"].rows for cell in row}
        assert (cells["=cmd()"], cells[300.5]) == ("s", "n")
        assert client.get(f"{url}.exe").status_code == 404

    def test_a_chart_is_taken_away_as_a_picture_of_its_own(self, client, session_id):
        number = compute(client, session_id, "revenue by product")
        sent = client.get(f"/sessions/{session_id}/sources/{number}.svg?chart=share")

        picture = ElementTree.fromstring(sent.get_data(as_text=True))
        assert sent.mimetype == "image/svg+xml"
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        assert "300" in "".join(picture.itertext())
        assert f"{number}.svg?chart=bar" in client.get(f"/sessions/{session_id}").text

    def test_another_owner_sees_nothing(self, application, client):
        theirs = application.store.create("somebody else")
        list(application.assistant.ask(theirs, "total revenue in Q1"))
        assert theirs.result(1) is not None

        assert client.get(f"/sessions/{theirs.id}/sources/1").status_code == 404
        assert client.get(f"/sessions/{theirs.id}/sources/1.csv").status_code == 404
        table_id = client.get("/api/v1/tables").json["tables"][0]["id"]
        url = f"/tables/{table_id}?session={theirs.id}&n=1"
        assert client.get(url).status_code == 404

    def test_mark_the_rows_in_the_original_table(self, client, session_id):
        number = ask(client, session_id, "total revenue in Q2")["sources"][0]["n"]
        table_id = client.get("/api/v1/tables").json["tables"][0]["id"]

        page = client.get(f"/tables/{table_id}?session={session_id}&n={number}").text

        assert len(MARKED.findall(page)) == 1

    def test_mark_the_rows_behind_one_figure(self, client, session_id):
        number = compute(client, session_id, "revenue by region")
        source = client.get(f"/sessions/{session_id}/sources/{number}?order=-1").text
        (first, *_others) = re.findall(r'href="(/tables/[^"]+row=\d+)"', source)

        page = client.get(html.unescape(first)).text

        assert len(MARKED.findall(page)) == 2
        assert "row 2 of" in page  # South, the highest, is the second of the result

    def test_draw_pictures_with_their_data_as_text(self, client, session_id):
        compute(client, session_id, "revenue by product")

        page = client.get(f"/sessions/{session_id}").text

        assert re.search(r'<svg class="chart"[^>]* role="img" aria-label="[^"]*Aero 5: 300', page)


def condition(column, op, values):
    names = ("column", "part", "op", "values")
    return dict(zip((f"filter_{n}" for n in names), (column, "", op, values), strict=True))


class TestThePlanAsAForm:
    def change(self, client, session_id, number, **fields):
        sent = client.post(f"/sessions/{session_id}/sources/{number}/plan", data=fields)
        return sent, sent.headers.get("Location", "")

    def test_shows_the_plan_and_computes_it_anew(self, client, session_id):
        number = compute(client, session_id, "revenue by product")
        page = client.get(f"/sessions/{session_id}/sources/{number}").text
        assert '<option value="Product" selected>' in page

        sent, location = self.change(
            client,
            session_id,
            number,
            change="1",
            filter_column=["Quarter", ""],
            filter_part=["quarter", ""],
            filter_op=["is", "is"],
            filter_values=["Q1", ""],
            group_column=["Region", ""],
            group_part=["", ""],
            measure_kind=["average", "count", ""],
            measure_column=["Revenue", "", ""],
            order="measure 1",
            descending="on",
            limit="1",
        )

        assert sent.status_code == 303
        changed = client.get(location.split("#")[0]).text
        words = "average Revenue and count of rows by Region with Quarter Q1, highest 1"
        assert words in changed
        assert ">75.25</td>" in changed
        assert client.get(f"/sessions/{session_id}/sources/{number}").status_code == 200

    @pytest.mark.parametrize("order", ["measure x", "measure 9", "measure "])
    def test_an_order_by_no_figure_is_that_of_the_table(self, client, session_id, order):
        number = compute(client, session_id, "revenue by product")

        sent, _ = self.change(client, session_id, number, change="1", order=order)

        assert sent.status_code == 303

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"group_column": "Region", "group_part": ""}, "no figure is chosen"),
            ({"limit": "ten"}, "whole number"),
            ({"limit": "100000"}, "1 to 1,000"),
            ({"measure_kind": "sum", "measure_column": "Product"}, "no sum of them"),
            ({"measure_kind": "explode", "measure_column": ""}, "Input should be 'count'"),
            (condition("Revenue", "above", "x"), "no number"),
            (condition("Revenue", "above", ""), "needs a value"),
            (condition("Price", "is", "1"), "has no column"),
        ],
    )
    def test_says_what_cannot_be(self, client, session_id, fields, reason):
        number = compute(client, session_id, "revenue by product")

        sent, _ = self.change(client, session_id, number, change="1", **fields)

        assert sent.status_code == 400
        assert reason in html.unescape(sent.text)

    def test_goes_on_from_what_came_of_it(self, client, session_id):
        number = compute(client, session_id, "revenue by product")
        ask(client, session_id, "What is a citation?")

        shown = ask(client, session_id, f"Show [{number}]")
        assert shown["citations"][0]["n"] == number
        assert "| North | 150.50 |" in ask(client, session_id, "by region instead")["content"]
        assert "Aero 5" in ask(client, session_id, f"[{number}] only Q2")["content"]


def test_a_changed_table_is_told_of_and_asked_again(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))
    try:
        client = app_of(application).test_client()
        list(application.ingestion.ingest([IncomingFile.from_bytes("sales.csv", SALES.encode())]))
        session_id = client.post("/api/v1/sessions", json={}).json["id"]
        number = ask(client, session_id, "total revenue in Q2")["sources"][0]["n"]
        more = SALES + "Aero 9,East,Q2,1000.00\n"
        list(application.ingestion.ingest([IncomingFile.from_bytes("sales.csv", more.encode())]))

        page = client.get(f"/sessions/{session_id}/sources/{number}").text
        assert "has changed since" in page
        assert "200.00" in page
        assert "Run it again on the table as it is now" in page
        again = client.post(f"/sessions/{session_id}/sources/{number}/plan")
        assert "1,200.00" in client.get(again.headers["Location"].split("#")[0]).text
        assert "1,050.50" not in ask(client, session_id, "and Q1?")["content"]
    finally:
        application.stop()
