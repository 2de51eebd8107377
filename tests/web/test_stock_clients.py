"""Stock clients of the OpenAI protocols get cited answers, and keep the citations."""

import openai
import pytest

pytestmark = pytest.mark.slow
ANSWER = "It weighs 120 g [1]."


def langchain(live, **options):
    """A chat model of LangChain; loaded here, for it takes a second that other tests would pay."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(base_url=f"{live.url}/v1", api_key="any", model="groundnote", **options)


@pytest.fixture
def stock(live):
    return openai.OpenAI(base_url=f"{live.url}/v1", api_key="any", max_retries=0)


def cited_in(text, annotations):
    return [text[each.start_index : each.end_index] for each in annotations]


def ask_after(stock, response, question="And the Mini?"):
    return stock.responses.create(
        model="groundnote", input=question, previous_response_id=response.id
    )


def three_turns(stock):
    first = stock.responses.create(model="groundnote", input="How heavy?")
    second = ask_after(stock, first, "And the Pro?")
    return first, second, ask_after(stock, second, "And the Max?")


class TestResponses:
    def test_hold_text_annotations_and_usage(self, stock, live):
        response = stock.responses.create(model="groundnote", input="How heavy?")

        (annotation,) = response.output[0].content[0].annotations
        assert (response.status, response.output_text) == ("completed", ANSWER)
        assert cited_in(ANSWER, [annotation]) == ["[1]"]
        assert annotation.url.startswith(f"{live.url}/sessions/")
        assert annotation.url.endswith("/sources/1")
        assert response.usage.total_tokens == 17

    def test_go_on_from_the_one_before(self, stock, application):
        first = stock.responses.create(model="groundnote", input="How heavy?")
        second = stock.responses.create(
            model="groundnote", input="And the Pro?", previous_response_id=first.id
        )

        assert second.session_id == first.session_id
        session = application.store.open(first.session_id, owner="local")
        assert session.read().message_count == 4

    def test_fork_where_the_conversation_went_on_since(self, stock, application):
        first = stock.responses.create(model="groundnote", input="How heavy?")
        for question in ("And the Pro?", "And the Max?"):
            response = stock.responses.create(
                model="groundnote", input=question, previous_response_id=first.id
            )

        assert response.session_id != first.session_id
        fork = application.store.open(response.session_id, owner="local")
        assert [message.content for message in fork.messages()][::2] == ["How heavy?", question]
        assert fork.read().source_count == 2

    def test_take_the_whole_conversation_too(self, stock):
        first = stock.responses.create(model="groundnote", input="How heavy?")
        said = [
            {"role": "user", "content": "How heavy?"},
            {"role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
            {"role": "user", "content": [{"type": "input_text", "text": "And the Pro?"}]},
        ]
        second = stock.responses.create(model="groundnote", input=said)

        assert second.session_id == first.session_id

    def test_are_streamed(self, stock):
        with stock.responses.stream(model="groundnote", input="How heavy?") as stream:
            events = list(stream)
            final = stream.get_final_response()

        text = "".join(each.delta for each in events if each.type == "response.output_text.delta")
        assert (text, final.output_text) == (ANSWER, ANSWER)
        assert events[0].type == "response.created"
        assert events[-1].type == "response.completed"
        assert any(each.type == "response.output_text.annotation.added" for each in events)
        assert [each.sequence_number for each in events[:2]] == [0, 1]


class TestResponsesOfBefore:
    def test_are_read_again(self, stock):
        first = stock.responses.create(model="groundnote", input="How heavy?")
        again = stock.responses.retrieve(first.id)

        assert (again.id, again.output_text) == (first.id, ANSWER)
        assert again.output[0].content[0].annotations[0].url.endswith("/sources/1")

    def test_tell_what_was_asked(self, stock):
        first = stock.responses.create(model="groundnote", input="How heavy?")
        (item,) = stock.responses.input_items.list(first.id).data

        assert item.content[0].text == "How heavy?"

    def test_stand_in_an_input_by_their_ids(self, stock, application):
        """As the AI SDK sends them back by default."""
        first = stock.responses.create(model="groundnote", input="How heavy?")
        said = [
            {"role": "user", "content": "How heavy?"},
            {"type": "item_reference", "id": first.output[0].id},
            {"role": "user", "content": "And the Pro?"},
        ]
        second = stock.responses.create(model="groundnote", input=said)

        assert second.session_id == first.session_id
        session = application.store.open(first.session_id, owner="local")
        assert session.read().message_count == 4

    def test_that_nobody_gave_are_refused_by_their_ids(self, stock):
        said = [
            {"role": "user", "content": "How heavy?"},
            {"type": "item_reference", "id": "msg_unknown_1"},
            {"role": "user", "content": "And the Pro?"},
        ]
        with pytest.raises(openai.NotFoundError, match="msg_unknown_1"):
            stock.responses.create(model="groundnote", input=said)
        with pytest.raises(openai.NotFoundError, match="resp_unknown_1"):
            stock.responses.retrieve("resp_unknown_1")

    def test_are_deleted_one_by_one(self, stock, application):
        first, second, third = three_turns(stock)
        stock.responses.delete(second.id)

        for gone in (
            lambda: stock.responses.retrieve(second.id),
            lambda: stock.responses.delete(second.id),
            lambda: ask_after(stock, second),
        ):
            with pytest.raises(openai.NotFoundError):
                gone()
        assert stock.responses.retrieve(first.id).output_text == ANSWER
        assert stock.responses.retrieve(third.id).output_text == ANSWER
        session = application.store.open(first.session_id, owner="local")
        assert [each.content for each in session.messages()] == [
            "How heavy?", ANSWER, "", "", "And the Max?", ANSWER,
        ]  # fmt: skip
        assert session.read().source_count == 2
        assert session.search("And the Pro?").total == 0
        fourth = ask_after(stock, third)
        assert fourth.session_id == first.session_id

    def test_the_newest_takes_nothing_with_it(self, stock):
        _, second, third = three_turns(stock)
        stock.responses.delete(third.id)

        assert stock.responses.retrieve(second.id).output_text == ANSWER
        assert ask_after(stock, second).output[0].content[0].annotations[0].url.endswith("/1")

    def test_a_conversation_goes_with_its_last_response(self, stock, application):
        for response in three_turns(stock):
            stock.responses.delete(response.id)

        assert application.store.sessions("local") == []


class TestCompletions:
    def test_carry_annotations(self, stock):
        messages = [{"role": "user", "content": "How heavy?"}]
        message = stock.chat.completions.create(model="groundnote", messages=messages)
        (annotation,) = message.choices[0].message.annotations

        assert annotation.type == "url_citation"
        assert cited_in(ANSWER, [annotation.url_citation]) == ["[1]"]
        assert annotation.url_citation.url.endswith("/sources/1")

    def test_honour_what_a_client_wants_of_the_model(self, stock, application):
        stock.chat.completions.create(
            model="groundnote",
            messages=[{"role": "user", "content": "How heavy?"}],
            max_tokens=50,
            temperature=0.7,
            stop=["END"],
        )

        wishes = application.assistant.wishes
        assert (wishes.max_tokens, wishes.temperature, wishes.stop) == (50, 0.7, ("END",))


class TestLangChain:
    @pytest.mark.parametrize("is_new", [False, True], ids=["completions", "responses"])
    def test_answers_and_streams(self, live, is_new):
        model = langchain(live, max_retries=0, use_responses_api=is_new)

        answer = model.invoke("How heavy?")
        streamed = list(model.stream("How heavy?"))

        assert answer.text == ANSWER
        assert "".join(chunk.text for chunk in streamed) == ANSWER

    def test_keeps_the_citations_of_responses(self, live):
        model = langchain(live, use_responses_api=True)
        whole = model.invoke("How heavy?")
        streamed = None
        for chunk in model.stream("How heavy?"):
            streamed = chunk if streamed is None else streamed + chunk

        for answer in (whole, streamed):
            (block,) = answer.content_blocks
            (citation,) = block["annotations"]
            assert citation["type"] == "citation"
            assert ANSWER[citation["start_index"] : citation["end_index"]] == "[1]"
            assert citation["url"].endswith("/sources/1")
