import json

import openai
import pytest

from rag.errors import ModelUnavailable
from rag.web.openai.completion import UNSEEN

CHAT = "/v1/chat/completions"


def chat(client, *contents, **options):
    roles = ("user", "assistant")
    messages = [
        {"role": roles[place % 2], "content": content} for place, content in enumerate(contents)
    ]
    return client.post(CHAT, json={"model": "groundnote", "messages": messages} | options)


def text_of(completion):
    return completion["choices"][0]["message"]["content"]


class TestCompletion:
    def test_holds_the_answer_its_citations_and_its_sources(self, client):
        completion = chat(client, "How heavy?").get_json()

        assert text_of(completion) == "It weighs 120 g [1]."
        assert completion["object"] == "chat.completion"
        assert completion["choices"][0]["finish_reason"] == "stop"
        assert completion["usage"] == {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "total_tokens": 17,
        }
        assert [citation["n"] for citation in completion["citations"]] == [1]
        assert [source["document"] for source in completion["sources"]] == ["manual.md"]

    def test_counts_no_tokens_where_no_model_was_called(self, client, application):
        application.assistant.usage = None

        assert chat(client, "How heavy?").get_json()["usage"]["total_tokens"] == 0

    def test_takes_parts_of_text_and_other_parameters(self, client, application):
        parts = [{"type": "text", "text": "How "}, {"type": "text", "text": "heavy?"}]
        body = {"messages": [{"role": "user", "content": parts}], "temperature": 0.1, "top_p": 1}

        assert client.post(CHAT, json=body).status_code == 200
        assert application.assistant.asked == ["How heavy?"]

    def test_takes_what_asks_for_nothing_and_what_older_turns_hold(self, client):
        tool = {"type": "function", "function": {"name": "look"}}
        refused = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
        called = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
        result = {"role": "tool", "tool_call_id": "1", "content": "7"}
        asked = {"role": "user", "content": "How heavy?"}
        body = {"messages": [asked, refused, asked, called, result, asked], "tools": [tool]}

        assert client.post(CHAT, json={**body, "tool_choice": "none"}).status_code == 200
        assert client.post(CHAT, json=body).status_code == 200

    @pytest.mark.parametrize("role", ["system", "developer"])
    def test_hands_the_clients_instructions_to_this_answer_alone(self, client, application, role):
        messages = [{"role": role, "content": "Be brief."}, {"role": "user", "content": "How?"}]

        completion = client.post(CHAT, json={"messages": messages}).get_json()

        assert application.assistant.wishes.instructions == "Be brief."
        session = application.store.open(completion["session_id"], owner="local")
        assert [each.role for each in session.bare_messages()] == ["user", "assistant"]

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            pytest.param({"messages": []}, "messages", id="no message"),
            pytest.param({}, "messages", id="no messages"),
            pytest.param({"messages": "a"}, "messages", id="a text"),
            pytest.param(
                {"messages": [{"role": "user", "content": "a"}], "n": 2}, "n", id="two answers"
            ),
            pytest.param(
                {"messages": [{"role": "system", "content": "a"}]}, "messages", id="no question"
            ),
            pytest.param({"messages": [{"role": "user", "content": " "}]}, None, id="blank"),
            pytest.param({"messages": [{"role": "user"}]}, None, id="no content"),
            pytest.param(
                {
                    "messages": [
                        {"role": "wizard", "content": "a"},
                        {"role": "user", "content": "a"},
                    ]
                },
                "messages",
                id="no such role",
            ),
            pytest.param(
                {"messages": [{"role": "user", "content": 5}]}, "messages.0.content", id="a number"
            ),
            pytest.param(
                {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
                "messages",
                id="an image",
            ),
        ],
    )
    def test_refuses_in_the_shape_of_openai(self, client, body, param):
        response = client.post(CHAT, json=body)

        assert response.status_code == 400
        assert response.mimetype == "application/json"
        error = response.get_json()["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
        assert error["message"]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("response_format", {"type": "json_schema", "json_schema": {}}),
            ("tools", [{"type": "web_search"}]),
            ("tool_choice", "required"),
            ("tool_choice", {"type": "function", "function": {"name": "look"}}),
            ("logprobs", True),
            ("web_search_options", {}),
            ("n", 2),
            ("stop", 5),
            ("stop", ["a", "b", "c", "d", "e"]),
            ("stream", "please"),
            ("stream_options", [1]),
            ("metadata", [1]),
            ("metadata.collections", 5),
            ("max_tokens", -2),
        ],
    )
    def test_refuses_what_it_cannot_do_by_its_name(self, client, name, value):
        field, _, inner = name.partition(".")

        response = chat(client, "How heavy?", **{field: {inner: value} if inner else value})

        assert response.status_code == 400
        assert response.get_json()["error"]["param"] == name

    @pytest.mark.parametrize(
        "harmless",
        [
            {"seed": 7, "user": "u", "store": True, "parallel_tool_calls": True},
            {"tools": [{"type": "function", "function": {"name": "look"}}], "tool_choice": "auto"},
            {"metadata": {"any": {"kind": [1, None]}}, "service_tier": "auto"},
            {"stream_options": {"include_usage": True}, "stop": ""},
        ],
    )
    def test_takes_what_changes_no_answer(self, client, harmless):
        assert text_of(chat(client, "How heavy?", **harmless).get_json()) == "It weighs 120 g [1]."

    @pytest.mark.parametrize(
        "body",
        [
            b"null",
            b'{"messages": [',
            b'{"messages": [{"role": "user", "content": "\xff"}]}',
            b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ],
        ids=["null", "cut off", "not UTF-8", "deep"],
    )
    def test_refuses_a_body_that_is_no_request(self, client, body):
        response = client.post(CHAT, data=body, content_type="application/json")

        assert response.status_code == 400
        assert response.get_json()["error"]["code"] == "bad_request"

    def test_leaves_no_session_behind_when_it_refuses(self, client):
        chat(client, " ")

        assert client.get("/api/v1/sessions").get_json()["sessions"] == []

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [("GET", CHAT, 405), ("GET", "/v1/nothing", 404), ("GET", "/v1/models/gpt-4", 404)],
    )
    def test_every_error_under_v1_has_that_shape(self, client, method, path, status):
        response = client.open(path, method=method)

        assert response.status_code == status
        assert response.get_json()["error"]["message"]

    @pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/models"])
    def test_an_address_without_its_end_is_told_of(self, client, path):
        told = client.post(path, json={}).get_json()["detail"]

        assert told.endswith("ends in /v1.")

    def test_tells_of_a_model_that_is_away(self, client, application):
        application.assistant.failure = ModelUnavailable("No model server.")

        response = chat(client, "How heavy?")

        assert response.status_code == 503
        assert response.get_json()["error"]["code"] == "model_unavailable"


class TestResponse:
    def test_reads_past_items_that_are_no_messages(self, client):
        items = [
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "7"},
            {"type": "message", "role": "user", "content": "How heavy?"},
        ]
        body = {"input": items, "text": {"format": {"type": "text"}, "verbosity": "low"}}

        response = client.post("/v1/responses", json=body).get_json()

        assert response["status"] == "completed"
        assert response["output"][0]["content"][0]["text"] == "It weighs 120 g [1]."

    @pytest.mark.parametrize(
        "item",
        [
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]},
            {"role": "wizard", "content": "a"},
            {"role": "system", "content": "a"},
        ],
    )
    def test_names_the_field_that_it_cannot_read(self, client, item):
        response = client.post("/v1/responses", json={"input": [item]})

        assert response.status_code == 400
        assert response.get_json()["error"]["message"].startswith("input: ")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("text", {"format": {"type": "json_object"}}),
            ("include", ["message.output_text.logprobs"]),
            ("background", True),
            ("conversation", "conv_1"),
            ("tools", [{"type": "web_search"}]),
            ("previous_response_id", "chatcmpl-1"),
            ("previous_response_id", "resp_nobody_1"),
        ],
    )
    def test_refuses_what_it_cannot_do_by_its_name(self, client, name, value):
        response = client.post("/v1/responses", json={"input": "How heavy?", name: value})

        assert response.status_code in (400, 404)
        assert response.get_json()["error"]["param"] == name

    def test_an_empty_name_of_a_response_is_none(self, client):
        body = {"input": "How heavy?", "previous_response_id": ""}

        assert client.post("/v1/responses", json=body).status_code == 200

    def test_goes_on_from_no_response_that_never_was(self, client):
        first = client.post("/v1/responses", json={"input": "How heavy?"}).get_json()
        later = first["id"].rpartition("_")[0] + "_999999999"

        body = {"input": "And the Pro?", "previous_response_id": later}
        refused = client.post("/v1/responses", json=body)

        assert refused.status_code == 404
        assert later in refused.get_json()["error"]["message"]
        assert len(client.get("/api/v1/sessions").get_json()["sessions"]) == 1


class TestRecognition:
    def test_a_transcript_sent_back_goes_on_in_its_session(self, client, application):
        first = chat(client, "How heavy?").get_json()

        second = chat(client, "How heavy?", text_of(first), "And the Pro?").get_json()

        assert second["session_id"] == first["session_id"]
        assert second["index"] == 3

    def test_a_refused_question_does_not_end_its_session(self, client):
        first = chat(client, "How heavy?").get_json()
        refused = chat(client, "How heavy?", text_of(first), " ")

        second = chat(client, "How heavy?", text_of(first), "And the Pro?").get_json()

        assert refused.status_code == 400
        assert second["session_id"] == first["session_id"]

    def test_a_forked_transcript_keeps_its_numbers(self, client):
        first = chat(client, "How heavy?").get_json()
        chat(client, "How heavy?", text_of(first), "And the Pro?")

        fork = chat(client, "How heavy?", text_of(first), "And the Max?").get_json()

        assert fork["session_id"] != first["session_id"]
        urls = [f"/api/v1/sessions/{c['session_id']}/sources" for c in (first, fork)]
        assert client.get(urls[0]).get_json() == client.get(urls[1]).get_json()

    def test_a_named_session_goes_on_whatever_is_sent_along(self, client, session_id):
        completion = chat(client, "How heavy?", metadata={"session_id": session_id}).get_json()

        assert completion["session_id"] == session_id

    def test_works_for_the_streamed_text_and_for_the_final_one(self, client, application):
        application.assistant.deltas = ("It weighs 120 g.",)
        application.assistant.final = "It weighs 120 g [1]."
        ends = []
        for text in ("It weighs 120 g.", "It weighs 120 g [1]."):
            chunks = chunks_of(chat(client, "How heavy?", stream=True))
            after = chat(client, "How heavy?", text, "And the Pro?").get_json()
            ends.append((chunks[-1]["session_id"], after["session_id"]))

        assert all(streamed == after for streamed, after in ends)


def chunks_of(response):
    lines = [line for line in response.get_data(as_text=True).split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


class TestStream:
    def test_gives_the_text_piece_by_piece_and_the_citations_at_the_end(self, client):
        chunks = chunks_of(chat(client, "How heavy?", stream=True))

        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        assert deltas[0]["role"] == "assistant"
        assert "".join(delta.get("content", "") for delta in deltas) == "It weighs 120 g [1]."
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
        assert chunks[-1]["citations"][0]["n"] == 1
        assert len({chunk["id"] for chunk in chunks}) == 1

    def test_ends_with_the_usage_if_asked(self, client):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = chunks_of(chat(client, "How heavy?", **options))

        assert chunks[-1]["choices"] == []
        assert chunks[-1]["usage"]["total_tokens"] == 17

    @pytest.mark.parametrize("error", [ModelUnavailable("It is away."), RuntimeError("secret")])
    def test_ends_with_an_error(self, client, application, error):
        application.assistant.surprise = error

        text = chat(client, "How heavy?", stream=True).get_data(as_text=True)

        assert '"error"' in text.split("\n\n")[-2]
        assert "[DONE]" not in text
        assert "secret" not in text


@pytest.mark.slow
class TestStockClient:
    @pytest.fixture
    def stock(self, live):
        with openai.OpenAI(base_url=f"{live.url}/v1", api_key="any", max_retries=0) as client:
            yield client

    def test_lists_the_model(self, stock):
        assert [model.id for model in stock.models.list()] == ["groundnote", "groundnote-links"]
        assert stock.models.retrieve("groundnote").owned_by == "groundnote"

    def test_streams(self, stock):
        stream = stock.chat.completions.create(
            model="groundnote",
            messages=[{"role": "user", "content": "How heavy?"}],
            stream=True,
            stream_options={"include_usage": True},
        )

        chunks = list(stream)

        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == "It weighs 120 g [1]."
        assert chunks[-1].usage.total_tokens == 17
        assert chunks[-2].citations[0]["n"] == 1

    def test_raises_its_own_errors(self, stock, application):
        with pytest.raises(openai.BadRequestError, match="empty"):
            stock.chat.completions.create(
                model="groundnote", messages=[{"role": "user", "content": ""}]
            )
        with pytest.raises(openai.NotFoundError):
            stock.models.retrieve("gpt-4")

        application.assistant.failure = ModelUnavailable("It is away.")
        with pytest.raises(openai.InternalServerError, match="away"):
            stock.chat.completions.create(
                model="groundnote", messages=[{"role": "user", "content": "a"}]
            )

    def test_raises_in_the_middle_of_a_stream(self, stock, application):
        application.assistant.failure = ModelUnavailable("It is away.")

        with pytest.raises(openai.APIError, match="away"):
            list(
                stock.chat.completions.create(
                    model="groundnote", messages=[{"role": "user", "content": "a"}], stream=True
                )
            )

    def test_must_show_a_known_key_where_tokens_are_asked(self, token_settings, engine, live):
        from rag.web.access.owner import find_owners

        find_owners(live.app, token_settings, engine)

        url = f"{live.url}/v1"

        stranger = openai.OpenAI(base_url=url, api_key="any", max_retries=0)
        with stranger, pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        with openai.OpenAI(base_url=url, api_key="token-of-anna") as anna:
            assert anna.models.list().data


class TestConversationsThatAreNamed:
    def test_keep_their_numbers_however_little_is_sent_along(self, client):
        first = chat(client, "How heavy?", metadata={"session": "ticket 7"}).get_json()
        second = chat(client, "And the Pro?", metadata={"session": "ticket 7"}).get_json()

        assert second["session_id"] == first["session_id"]
        assert second["index"] == 3

    def test_are_never_taken_for_each_other(self, client):
        sessions = {
            chat(client, "How heavy?", metadata={"session": name}).get_json()["session_id"]
            for name in ("ticket 7", "ticket 8", "Ticket 7")
        }

        assert len(sessions) == 3

    def test_are_each_owners_own(self, token_app):
        client = token_app.test_client()
        sessions = set()
        for token in ("token-of-anna", "token-of-ben"):
            body = {
                "messages": [{"role": "user", "content": "How heavy?"}],
                "metadata": {"session": "ticket 7"},
            }
            headers = {"Authorization": f"Bearer {token}"}
            sessions.add(client.post(CHAT, json=body, headers=headers).get_json()["session_id"])

        assert len(sessions) == 2


class TestNumbersAsLinks:
    @pytest.mark.parametrize(
        "options",
        [
            pytest.param({"metadata": {"citations": "links"}}, id="metadata"),
            pytest.param({"model": "groundnote-links"}, id="model"),
        ],
    )
    def test_lead_to_their_sources(self, client, options):
        completion = chat(client, "How heavy?", **options).get_json()
        text = text_of(completion)
        (annotation,) = completion["choices"][0]["message"]["annotations"]
        cited = annotation["url_citation"]

        url = f"http://localhost/sessions/{completion['session_id']}/sources/1"
        assert text == f"It weighs 120 g [[{UNSEEN}1]]({url})."
        assert text[cited["start_index"] : cited["end_index"]] == f"[[{UNSEEN}1]]({url})"

    def test_are_streamed_whole(self, client, application):
        application.assistant.deltas = ("First [1]", ".\n", "\nSecond", " [1].")
        response = chat(client, "How heavy?", model="groundnote-links", stream=True)
        chunks = [json.loads(line[6:]) for line in response.text.splitlines() if "{" in line]
        deltas = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]

        assert "".join(deltas) == chunks[-1]["content"]
        assert [delta.count("](http") for delta in deltas if delta] == [1, 1]

    def test_are_none_in_code(self, client, application):
        application.assistant.deltas = ("It is [1].\n\n```\na = b[1]\n\nc = d[1]\n```\n",)
        text = text_of(chat(client, "How heavy?", model="groundnote-links").get_json())

        assert text.endswith("```\na = b[1]\n\nc = d[1]\n```\n")
        assert text.count("](http") == 1

    def test_go_on_from_what_was_sent(self, client):
        first = chat(client, "How heavy?", model="groundnote-links").get_json()
        second = chat(client, "How heavy?", text_of(first), "And the Pro?").get_json()

        assert second["session_id"] == first["session_id"]

    def test_of_another_form_are_refused_by_name(self, client):
        response = chat(client, "How heavy?", metadata={"citations": "footnotes"})

        assert response.status_code == 400
        assert "metadata.citations" in response.get_json()["error"]["message"]
