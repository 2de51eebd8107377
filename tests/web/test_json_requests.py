"""JSON bodies: what is read, what is not, and what reading may cost."""

import json

import pytest

from rag.web.request_context import LONG_CHARS, MOST_VALUES, StrictJson

BODIES = [
    {"content": 'The "Aero 5" weighs 120 g.\n\\ \u2028 \U0001f600'},
    {"a": [1, -2.5, 1e300, True, False, None, "", [], {}, [[1], {"b": [{}]}]]},
    {"messages": [{"role": "user", "content": "word " * 50}] * 2000},
]


@pytest.mark.parametrize("padding", [0, LONG_CHARS])
@pytest.mark.parametrize("body", BODIES)
def test_long_and_short_bodies_are_read_alike(body, padding):
    assert StrictJson.loads(json.dumps(body) + " " * padding) == body


@pytest.mark.parametrize("padding", [0, LONG_CHARS])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_what_is_no_number_is_refused(client, number, padding):
    body = f'{{"title": "A", "context_config": {{"max_tokens": {number}}}}}' + " " * padding

    answered = client.post("/api/v1/sessions", data=body, content_type="application/json")

    assert answered.status_code == 400
    assert "not valid JSON" in answered.get_json()["detail"]


@pytest.mark.parametrize("value", ["[]", "{}", "1", '""'])
def test_more_values_than_anybody_sends_are_refused(client, value):
    body = f'{{"messages": [{",".join([value] * (MOST_VALUES + 1))}]}}'

    answered = client.post("/api/v1/sessions/1/import", data=body, content_type="application/json")

    assert answered.status_code == 400
    assert "more than 500,000 values" in answered.get_json()["detail"]


@pytest.mark.parametrize("depth", [600, 100_000])
def test_depths_are_refused(client, depth):
    body = f'{{"title": {"[" * depth}{"]" * depth}}}'

    answered = client.post("/api/v1/sessions", data=body, content_type="application/json")

    assert 400 <= answered.status_code < 500


@pytest.mark.parametrize("padding", [0, LONG_CHARS])
@pytest.mark.parametrize("written", [r"\ud800", r"a\uDFFF"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/sources", '{"KEY": 1}'),
        ("PUT", "/api/v1/collections/1", '{"KEY": 1}'),
        ("POST", "/api/v1/sessions", '{"context_config": {"KEY": 1}}'),
        ("POST", "/v1/chat/completions", '{"messages": [], "metadata": {"KEY": 1}}'),
    ],
)
def test_a_key_with_half_a_character_is_refused(client, method, path, body, written, padding):
    body = body.replace("KEY", written) + " " * padding

    answered = client.open(path, method=method, data=body, content_type="application/json")

    assert answered.status_code == 400
    assert "holds half a character" in answered.get_data(as_text=True)


def test_other_keys_and_values_are_read_as_ever():
    body = r'{"a\ud83d\ude00": "\ud800"}'

    assert StrictJson.loads(body) == {"a\U0001f600": "\ud800"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/sessions/1/import", {"messages": [{"role": 1, "content": 2}] * 20_000}),
        ("/api/v1/sessions/1/import", {"messages": [{"role": "a", "content": "b"}],
                                       "sources": [{}] * 10_000}),
        ("/v1/chat/completions", {"messages": ["x"] * 20_000}),
        ("/v1/responses", {"input": ["x"] * 20_000}),
    ],
)  # fmt: skip
def test_of_thousands_that_are_wrong_the_first_is_told(client, path, body):
    answered = client.post(path, json=body)

    assert answered.status_code in (400, 422)
    assert len(answered.get_data()) < 2_000
