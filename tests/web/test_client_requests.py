"""What belongs to a request stays with it; what of it cannot be read costs no answer."""

import json

import pytest

from tests.web.kit import assistant, numbers, plainly, product, sources_of, system, text_of, user

QUESTION = "How long does the battery of the Aero 5 last?"
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {"id": "a", "type": "function", "function": {"name": "s", "arguments": "{}"}}
CONTEXT = "".join(
    f'<source id="{number}" name="budget.pdf">The travel budget of team {number} is {number}000 '
    f"euros a year; trips are booked by the manager of the office.</source>\n"
    for number in range(1, 6)
)


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    with product(tmp_path_factory.mktemp("product") / "home") as kit:
        yield kit


@pytest.fixture(autouse=True)
def _plain_model(kit):
    kit.answer = plainly


def parts(role, *found):
    return {"role": role, "content": [{"type": "text", "text": "Look at this."}, *found]}


def sent(kit):
    return json.dumps(kit.asked()[-1])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param([system("RULE-A")], [system("RULE-B")], id="changed"),
        pytest.param([], [system("RULE-B")], id="added"),
        pytest.param([system("RULE-A")], [], id="taken away"),
        pytest.param([system("RULE-A")], [{"role": "developer", "content": "RULE-B"}], id="role"),
    ],
)
@pytest.mark.parametrize("named", [{}, {"metadata": {"session": "rules"}}])
def test_instructions_are_those_of_the_request(kit, first, second, named):
    answered = kit.chat([*first, user(QUESTION)], **named)
    kit.chat([*second, user(QUESTION), assistant(text_of(answered)), user("And the Pro?")], **named)

    assert ("RULE-A" in sent(kit)) is False
    assert ("RULE-B" in sent(kit)) is bool(second)


@pytest.mark.parametrize(
    "past",
    [
        pytest.param([parts("user", PICTURE)], id="picture"),
        pytest.param([parts("user", {"type": "file", "file": {}}), assistant("ok")], id="file"),
        pytest.param([parts("user", {"type": "input_audio", "input_audio": {}})], id="audio"),
        pytest.param([user("hi"), parts("assistant", PICTURE)], id="picture of an answer"),
        pytest.param(
            [
                user("hi"),
                {"role": "assistant", "content": "", "tool_calls": [CALL]},
                parts("tool", PICTURE) | {"tool_call_id": "a"},
                assistant("done"),
            ],
            id="result of a tool",
        ),
    ],
)
def test_a_part_of_the_past_that_is_no_text_is_passed_over_with_a_notice(kit, past):
    status, body = kit.chat([*past, user(QUESTION)])

    assert (status, len(body["citations"])) == (200, 1)
    assert any("could not be read" in notice for notice in body["notices"])


@pytest.mark.parametrize("kind", ["thinking", "tool_use", "reasoning"])
def test_thoughts_in_the_past_are_nobodys_business(kit, kind):
    answered = {"role": "assistant", "content": [{"type": kind, kind: "hm"}]}

    status, body = kit.chat([user("hi"), answered, user(QUESTION)])

    assert (status, body["notices"]) == (200, [])


def test_only_a_question_without_words_is_refused(kit):
    beside = {"role": "user", "content": [{"type": "text", "text": QUESTION}, PICTURE]}

    assert kit.chat([beside])[0] == 200
    status, body = kit.chat([{"role": "user", "content": [PICTURE]}])
    assert status == 400
    assert "image_url" in body["error"]["message"]


def test_parts_of_text_are_not_run_together(kit):
    said = [
        {"type": "text", "text": "How much does the Aero 5"},
        {"type": "text", "text": "weigh?"},
    ]
    kit.chat([{"role": "user", "content": said}])

    assert "Aero 5\\nweigh?" in sent(kit)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(("limit", "status"), [(-1, 200), (0, 200), (None, 200), (-2, 400)])
def test_no_limit_is_none(kit, name, limit, status):
    assert kit.chat([user(QUESTION)], **{name: limit})[0] == status


def test_an_answer_that_stands_last_goes_on(kit):
    asked = user(f"Go on: {QUESTION}")
    answered = kit.chat([asked])
    status, body = kit.chat([asked, assistant(text_of(answered))])

    assert (status, body["session_id"]) == (200, answered[1]["session_id"])


def test_instructions_behind_an_answer_are_what_is_asked(kit):
    said = [user("hi"), assistant("Hello."), system(QUESTION)]

    assert numbers(text_of(kit.chat(said))) == [1]


def test_an_id_of_a_tracing_program_names_no_session(kit):
    assert kit.chat([user(QUESTION)], metadata={"session_id": "trace-4711"})[0] == 200
    assert kit.chat([user(QUESTION)], metadata={"session_id": "0" * 32})[0] == 404


class TestUnstored:
    def test_nothing_said_is_left_and_numbers_go_on(self, kit):
        first = kit.chat([user(f"{QUESTION} SECRET-1")], store=False)
        said = [user(f"{QUESTION} SECRET-1"), assistant(text_of(first))]
        second = kit.chat([*said, user(f"Once more: {QUESTION} SECRET-2")], store=False)

        assert second[1]["session_id"] == first[1]["session_id"]
        assert numbers(text_of(first)) == [1]
        assert 1 in numbers(text_of(second))
        assert text_of(first).strip("[1]. ") in sent(kit)  # the model was told what the client sent
        session = first[1]["session_id"]
        stored = kit.call("GET", f"/api/v1/sessions/{session}/messages")[1]["messages"]
        assert [each["content"] for each in stored] == [""] * 4
        assert "SECRET" not in json.dumps(kit.call("GET", "/api/v1/sessions")[1])
        assert session not in json.dumps(kit.call("GET", "/api/v1/sessions")[1])
        assert kit.call("GET", f"/api/v1/sessions/{session}/sources/1")[0] == 200

    def test_nor_of_a_transcript_that_is_sent_along(self, kit):
        said = [user("SECRET-3"), assistant("I see, SECRET-4.")]
        answered = kit.chat([*said, user(QUESTION)], store=False)
        session = answered[1]["session_id"]

        assert "SECRET" not in json.dumps(kit.call("GET", f"/api/v1/sessions/{session}/messages"))

    def test_streamed_and_in_responses(self, kit):
        kit.stream(messages=[user(f"{QUESTION} SECRET-5")], store=False)
        body = {"model": "groundnote", "input": f"{QUESTION} SECRET-6", "store": False}
        status, told = kit.call("POST", "/v1/responses", body)

        assert (status, told["store"]) == (200, False)
        assert kit.call("GET", f"/v1/responses/{told['id']}")[0] == 404
        found = kit.call("GET", "/api/v1/sessions?limit=100")[1]["sessions"]
        assert not any("SECRET" in each["title"] for each in found)

    def test_where_nothing_is_said_of_it_all_is_kept(self, kit):
        answered = kit.chat([user(QUESTION)])

        listed = json.dumps(kit.call("GET", "/api/v1/sessions")[1])
        assert answered[1]["session_id"] in listed


class TestTasks:
    @pytest.mark.parametrize(
        "messages",
        [
            pytest.param(
                [system("Make titles."), user("user: How long?\nassistant: Five days.")],
                id="behind instructions",
            ),
            pytest.param(
                [user("A name for this:\n\n```\nHuman: How long?\nAI: Five days.\n```")],
                id="in a fence",
            ),
            pytest.param(
                [user('Sum up: [{"role": "user", "content": "x"}, {"role": "assistant"}]')],
                id="as JSON",
            ),
            pytest.param(
                [user("Tags for [{'role': 'user', 'content': 'x'}, {'role': 'assistant'}]")],
                id="as Python",
            ),
            pytest.param(
                [user("Sum up:\n- role: user\n  content: x\n- role: assistant\n  content: y")],
                id="as YAML",
            ),
            pytest.param(
                [user("<chat_history>\nUSER: How long?\nASSISTANT: Five.\n</chat_history>\nTags?")],
                id="in tags",
            ),
            pytest.param(
                [user("Title?\n\n**User**: How long?\n\n**Assistant**: Five days.")], id="in bold"
            ),
            pytest.param(
                [user("Title?\n\n### User\nHow long?\n\n### Assistant\nFive days.")],
                id="under headings",
            ),
            pytest.param(
                [user("Title?\n<user>How long?</user>\n<assistant>Five days.</assistant>")],
                id="in tags of their own",
            ),
            pytest.param([user("User:\nHow long?\nAssistant:\nFive.\n\nTitle?")], id="in lines"),
            pytest.param(
                [user("user：多久？\nassistant：五天。\n\n请用一句话总结")], id="with wide colons"
            ),
            pytest.param(
                [user('Merge the replies to "How long?":\n\n"""Five days."""\n\n"""Ten."""')],
                id="answers merged",
            ),
            pytest.param(
                [
                    user("user: Hi\nassistant: Hello"),
                    assistant("A greeting"),
                    user("user: How long?\nassistant: Five days."),
                ],
                id="behind an example",
            ),
        ],
    )
    def test_a_quoted_conversation_is_no_question(self, kit, messages):
        kit.answer = lambda body: "A title" if not sources_of(body) else "no"
        before = len(kit.asked())

        answered = kit.chat(messages)

        assert text_of(answered) == "A title"
        assert len(kit.asked()) == before
        assert "session_id" not in answered[1]

    def test_anything_goes_to_the_model_alone_by_its_name(self, kit):
        kit.answer = lambda body: "An emoji [1]" if not sources_of(body) else "no"
        listed = kit.call("GET", "/v1/models")[1]["data"]

        answered = kit.chat([user("One emoji for: I am glad")], model="groundnote-plain")

        assert "groundnote-plain" in [each["id"] for each in listed]
        assert "session_id" not in answered[1]
        assert text_of(answered).startswith("An emoji")

    def test_in_responses_too(self, kit):
        kit.answer = lambda body: "An emoji [1]" if not sources_of(body) else "no"
        body = {"model": "groundnote-plain", "input": "One emoji for: I am glad"}

        status, answered = kit.call("POST", "/v1/responses", body)

        assert status == 200
        assert answered["output"][-1]["content"][0]["text"].startswith("An emoji")

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(f"user: {QUESTION}", id="one side"),
            pytest.param(f"The user asks an assistant: {QUESTION}", id="in a sentence"),
            pytest.param(f'In """the manual""" of the "assistant": {QUESTION}', id="quotes"),
            pytest.param(f"Which role: user or admin? {QUESTION}", id="a word"),
        ],
    )
    def test_what_quotes_no_conversation_is_a_question(self, kit, text):
        assert "session_id" in kit.chat([user(text)])[1]

    @pytest.mark.parametrize("named", [{}, {"metadata": {"session": "quoting"}}])
    def test_who_quotes_one_in_a_conversation_with_us_asks(self, kit, named):
        first = kit.chat([user(f"Quoting: {QUESTION}")], **named)
        said = [user(f"Quoting: {QUESTION}"), assistant(text_of(first))]
        quoting = user(f"user: Hi\nassistant: Hello\n\n{QUESTION}")

        answered = kit.chat([quoting] if named else [*said, quoting], **named)

        assert answered[1]["session_id"] == first[1]["session_id"]


class TestWrapping:
    @pytest.mark.parametrize(
        "wrap",
        [
            pytest.param(
                lambda q: (
                    f"### Task:\nAnswer from the context.\n\n<context>\n{CONTEXT}</context>\n\n{q}"
                ),
                id="question last",
            ),
            pytest.param(
                lambda q: f"{q}\n\nAttached files:\n```md\n{CONTEXT}\n```", id="question first"
            ),
            pytest.param(
                lambda q: f"<query>{q}</query>\n\n<context>\n{CONTEXT}</context>\n\nCite sources.",
                id="question in tags",
            ),
            pytest.param(lambda q: f"[2026-11-28, Anna] {q}", id="time stamp"),
        ],
    )
    def test_the_question_alone_is_searched(self, kit, wrap):
        _, body = kit.chat([user(wrap(QUESTION))])

        assert body["resolved_query"].endswith(QUESTION)

    def test_a_number_of_the_clients_context_is_none_of_ours(self, kit):
        kit.answer = lambda body: "The budget of team 2 is 2000 euros [2]."
        wrapped = f"<context>\n{CONTEXT}</context>\n\nWhat is the budget of team 2?"

        answered = kit.chat([user(wrapped)])

        assert numbers(text_of(answered)) == []
        assert all(each["n"] > 5 for each in answered[1]["sources"])

    def test_a_short_block_is_part_of_the_question(self, kit):
        asked = f"What does <b>weigh</b> mean for `Aero 5`?\n```\nAero 5\n```\n{QUESTION}"

        assert kit.chat([user(asked)])[1]["resolved_query"].startswith("What does")

    @pytest.mark.parametrize("named", [{}, {"metadata": {"session": "wrapped"}}])
    def test_an_earlier_template_does_not_lead_what_follows(self, kit, named):
        wrapped = user(f"<context>\n{CONTEXT}</context>\n\n{QUESTION}")
        first = kit.chat([wrapped], **named)
        followed = [wrapped, assistant(text_of(first)), user("And the Aero 5 Pro?")]

        _, body = kit.chat(followed, **named)

        assert "battery" in body["resolved_query"]
        assert "budget" not in body["resolved_query"]
        assert "budget of team 1" in sent(kit)  # the model goes on seeing what it was shown
        session = kit.call("GET", f"/api/v1/sessions/{body['session_id']}")[1]
        assert session["title"] == QUESTION

    def test_who_sends_it_bare_from_then_on_goes_on(self, kit):
        """As Open WebUI does; so short an answer counts only with its question."""
        kit.answer = lambda body: "30 hours [6]." if sources_of(body) else "[]"
        first = kit.chat([user(f"<context>\n{CONTEXT}</context>\n\nBare: {QUESTION}")])
        bare = [user(f"Bare: {QUESTION}"), assistant(text_of(first)), user("Sure?")]

        assert kit.chat(bare)[1]["session_id"] == first[1]["session_id"]
