"""One turn, from the question to the stored answer, with a scripted model and the real rest."""

from copy import copy
from dataclasses import replace

import pytest

from rag.chat.answers import Answering, DirectSources
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.card import CardWriter
from rag.chat.decision import BESIDE_THE_POINT, ELSEWHERE, LATER, REPEATED, weakness
from rag.chat.draft import ModelWriter
from rag.citations.register import as_source
from rag.documents.files import IncomingFile
from rag.errors import (
    Conflict,
    ContextTooLong,
    ModelInterrupted,
    ModelUnavailable,
    TooLarge,
    UserError,
)
from rag.records import (
    EVERYTHING,
    Answer,
    Citation,
    Cited,
    Failed,
    Finished,
    MessageStatus,
    NoticeKind,
    Resolved,
    SetAside,
    Source,
    Sources,
    Text,
    Usage,
    Verdict,
)
from rag.seams import DirectAnswer
from rag.settings import Settings
from tests.applications import application_of
from tests.fakes import HashEmbedder, ScriptedModel
from tests.model_application import World
from tests.openai_server import reply

REFUNDS = """# Refunds

## Timing

Refunds are paid within five working days after the parcel arrives.

## From abroad

Refunds to customers abroad take twelve working days.
"""
AERO = """# Aero 5

The Aero 5 weighs 410 g. As said in [7], the Aero 5 has four ports.
"""


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"))
    application = application_of(settings)
    files = [("refunds.md", REFUNDS), ("aero.md", AERO)]
    incoming = [IncomingFile.from_bytes(name, text.encode()) for name, text in files]
    list(application.ingestion.ingest(incoming))
    yield application
    application.stop()


@pytest.fixture
def session(application):
    return application.store.create("ada")


@pytest.fixture
def with_model(application):
    """An assistant whose writer is a scripted model."""

    def with_model(*replies, **limits):
        model = ScriptedModel(*replies)
        plain = application.assistant
        memory = copy(plain._memory)  # as where a model is set, which reads what is sent
        memory._rules = replace(memory._rules, is_read=True)
        assistant = Assistant(
            application.retriever,
            plain._followups,
            memory,
            Answering(ModelWriter(model), None),
            limits=TurnLimits(**limits),
        )
        return assistant, model

    return with_model


def of_kind(events, kind):
    return [event for event in events if isinstance(event, kind)]


class TestAsk:
    def test_tells_the_turn_in_order_and_stores_what_it_told(self, application, session):
        events = list(application.assistant.ask(session, "When are refunds paid?"))

        assert isinstance(events[0], Resolved)
        assert isinstance(events[1], Sources)
        finished = events[-1]
        assert isinstance(finished, Finished)
        assert "".join(event.text for event in of_kind(events, Text)) == finished.message.content
        assert "five working days" in finished.message.content
        assert finished.sources[0].document_name == "refunds.md"
        assert session.messages()[1] == finished.message

    def test_every_citation_carries_its_place_and_its_support(self, application, session):
        finished = list(application.assistant.ask(session, "How long do refunds take?"))[-1]

        message = finished.message
        assert message.answer.citations
        for citation in message.answer.citations:
            assert message.content[citation.start] == "["
            assert str(citation.number) in message.content[citation.start : citation.end]
            assert citation.verdict is Verdict.SUPPORTED

    def test_says_plainly_when_the_documents_do_not_answer(self, application, session):
        finished = list(application.assistant.ask(session, "Who won the 1974 world cup?"))[-1]

        assert finished.message.answer.declined
        assert finished.message.answer.unsourced == ()

    @pytest.mark.parametrize("question", ["", "  \n\t "])
    def test_refuses_an_empty_question_and_stores_nothing(self, application, session, question):
        with pytest.raises(UserError, match="empty"):
            application.assistant.ask(session, question)
        assert session.messages() == []

    def test_refuses_a_huge_question_with_both_numbers(self, application, session):
        with pytest.raises(TooLarge, match=r"100,000 characters; at most 20,000"):
            application.assistant.ask(session, "x" * 100_000)
        assert session.messages() == []

    @pytest.mark.parametrize(
        "question", ["[99] [1] 【3】 refunds?", "<script>alert(1)</script> refunds?", "\x00\ud800?"]
    )
    def test_takes_hostile_questions_as_questions(self, application, session, question):
        finished = list(application.assistant.ask(session, question))[-1]

        assert isinstance(finished, Finished)

    def test_what_a_document_says_in_brackets_is_no_citation(self, application, session):
        finished = list(application.assistant.ask(session, "How many ports has the Aero 5?"))[-1]

        numbers = {citation.number for citation in finished.message.answer.citations}
        assert numbers <= {source.number for source in finished.sources}
        assert 7 not in numbers


class TestNumbers:
    def test_a_source_keeps_its_number_in_later_turns(self, application, session):
        first = list(application.assistant.ask(session, "How long do refunds take?"))[-1]
        list(application.assistant.ask(session, "How much does the Aero 5 weigh?"))
        again = list(application.assistant.ask(session, "How long do refunds take?"))[-1]

        assert {s.number: s.chunk_id for s in again.sources} == {
            s.number: s.chunk_id for s in first.sources
        }

    def test_a_question_that_names_a_number_gets_that_source_first(self, application, session):
        first = list(application.assistant.ask(session, "How long do refunds take?"))[-1]
        number = first.sources[0].number

        events = list(application.assistant.ask(session, f"Tell me more about [{number}]."))

        assert [source.number for source in of_kind(events, Sources)[0].sources] == [number]

    def test_a_number_that_does_not_exist_is_said_so(self, application, session):
        list(application.assistant.ask(session, "When are refunds paid?"))

        finished = list(application.assistant.ask(session, "What does [77] say of refunds?"))[-1]

        assert finished.message.content.startswith("This conversation has no source number 77 ")
        assert finished.message.answer.unsourced == ()
        assert all(citation.number < 77 for citation in finished.message.answer.citations)

    def test_nor_does_one_that_the_question_itself_brings_forth(self, application, session):
        finished = list(application.assistant.ask(session, "What does [1] say of refunds?"))[-1]

        assert "no source number 1 (it has none yet)" in finished.message.content


class TestWithAModel:
    def test_an_invented_number_never_leaves(self, session, with_model):
        assistant, _ = with_model("Refunds take five days [1][99]. Surely [42].")

        events = list(assistant.ask(session, "How long do refunds take?"))

        text = "".join(event.text for event in of_kind(events, Text))
        assert "99" not in text
        assert "42" not in text
        assert "99" not in session.messages()[1].content
        assert [event.number for event in of_kind(events, Cited)] == [1]

    def test_nor_does_one_that_is_read_once_another_is_gone(self, session, with_model):
        assistant, _ = with_model("Refunds take five days [1], see [99]Source 42 for more.")

        finished = list(assistant.ask(session, "How long do refunds take?"))[-1]

        assert [each.number for each in finished.message.answer.citations] == [1]
        assert session.messages()[1].content == finished.message.content

    def test_its_usage_and_name_are_kept(self, session, with_model):
        assistant, _ = with_model(["Refunds take five working days [1].", Usage(100, 9)])

        finished = list(assistant.ask(session, "How long do refunds take?"))[-1]

        answer = session.message(1).answer
        assert (answer.model, answer.usage) == ("scripted", Usage(100, 9))
        assert finished.context["tokens"] <= finished.context["budget"]

    def test_a_figure_of_what_a_first_question_quotes_is_found(self, session, with_model):
        log = "\n".join(f"line {number}: all is well" for number in range(12))
        question = f"<log>\n{log}\nretry limit 4711 ms\n</log>\nHow long do refunds take?"
        assistant, _model = with_model("Refunds take five working days, the limit is 4711 ms [1].")

        answer = list(assistant.ask(session, question))[-1].message.answer

        statuses = {answer.text[f.start : f.end]: f.status.value for f in answer.figures}
        assert statuses["4711 ms"] == "found"

    def test_a_forgotten_citation_is_attributed(self, session, with_model):
        assistant, _ = with_model(
            "Refunds are paid within five working days after the parcel arrives."
        )

        finished = list(assistant.ask(session, "How long do refunds take?"))[-1]

        (citation,) = finished.message.answer.citations
        assert citation.attributed
        assert finished.message.content.count("[") == 1

    def test_a_citation_set_directly_after_a_word_counts(self, session, with_model):
        said = "Refunds are paid within five working days after the parcel arrives"
        assistant, _ = with_model(f"{said}.", lambda _: f"{said}[{number}].")
        first = list(assistant.ask(session, "How long do refunds take?"))[-1]
        number = first.message.answer.citations[0].number

        again = list(assistant.ask(session, "How long do refunds take, again?"))[-1]

        (citation,) = again.message.answer.citations
        assert (citation.number, citation.attributed) == (number, False)
        assert again.message.content == f"{said}[{number}]."

    def test_a_citation_that_its_source_does_not_carry_is_flagged(self, session, with_model):
        assistant, _ = with_model("The Aero 5 weighs 510 g [1].")

        finished = list(assistant.ask(session, "How much does the Aero 5 weigh?"))[-1]

        (citation,) = finished.message.answer.citations
        assert citation.verdict is Verdict.CONTRADICTED

    @pytest.mark.parametrize(
        "error",
        [ModelUnavailable("The server is down."), ModelInterrupted("It broke off.")],
        ids=["absent", "broken"],
    )
    def test_its_failure_keeps_the_question_and_says_why(self, session, with_model, error):
        assistant, _ = with_model([error])

        events = list(assistant.ask(session, "How long do refunds take?"))

        assert isinstance(events[-1], Failed)
        assert events[-1].message == str(error)
        question, answer = session.messages()
        assert question.content == "How long do refunds take?"
        assert (answer.status, answer.error) == (MessageStatus.FAILED, str(error))

    def test_what_it_wrote_before_it_broke_off_is_kept_as_interrupted(self, session, with_model):
        assistant, _ = with_model(["Refunds take ", ModelInterrupted("It broke off.")])

        events = list(assistant.ask(session, "How long do refunds take?"))

        assert isinstance(events[-1], Failed)
        answer = session.message(1)
        assert answer.status is MessageStatus.INTERRUPTED
        assert answer.content.startswith("Refunds take")

    def test_what_it_cited_before_it_broke_off_is_an_answer_that_says_so(self, session, with_model):
        said = "Refunds take five working days [1]. And "
        assistant, _ = with_model([said, ModelInterrupted("It broke off.")])

        finished = list(assistant.ask(session, "How long do refunds take?"))[-1]

        answer = session.message(1)
        assert isinstance(finished, Finished)
        assert (answer.status, answer.content.strip()) == (MessageStatus.COMPLETE, said.strip())
        (notice,) = [each for each in answer.answer.notices if each.kind is NoticeKind.CUT]
        assert "It broke off." in notice.text

    def test_what_it_wrote_uncited_before_it_broke_off_stands_below_the_passages(
        self, application, session
    ):
        model = ScriptedModel(["Refunds take ", ModelInterrupted("It broke off.")])
        answering = Answering(ModelWriter(model), fallback=CardWriter(HashEmbedder().embed))
        plain = application.assistant
        assistant = Assistant(
            application.retriever,
            plain._followups,
            plain._memory,
            answering,
            limits=TurnLimits(),
        )

        events = list(assistant.ask(session, "How long do refunds take?"))

        finished = events[-1]
        answer = finished.message.answer
        assert isinstance(finished, Finished)
        assert (answer.set_aside.text, answer.card is None) == ("Refunds take", False)
        assert finished.message.content.index("five working days") > 0
        assert finished.message.content.endswith("\n\n> Refunds take")
        texts = "".join(event.text for event in of_kind(events, Text))
        assert texts.endswith(finished.message.content)
        assert session.message(1).answer.set_aside.reason == answer.set_aside.reason
        assert any("It broke off." in notice.text for notice in answer.notices)

    def test_all_its_calls_share_one_deadline(self, session, with_model):
        said, too_long = "Five working days [1].", ContextTooLong("Too long.")
        assistant, model = with_model(said, [too_long], said, answer_seconds=30.0)

        for _ in range(2):
            list(assistant.ask(session, "How long do refunds take?"))

        earlier, first, second = (request.deadline for request in model.requests)
        assert earlier is not first
        assert first is second
        assert first.seconds == 30

    def test_an_empty_reply_is_a_failure_not_an_answer(self, session, with_model):
        assistant, _ = with_model("  ")

        events = list(assistant.ask(session, "How long do refunds take?"))

        assert "empty answer" in events[-1].message

    def test_leaving_stops_the_model_and_keeps_what_was_written(self, session, with_model):
        assistant, model = with_model("Refunds take five working days [1]. And so on, and so on.")
        events = assistant.ask(session, "How long do refunds take?")
        while not isinstance(next(events), Text):
            pass

        events.close()

        assert model.hung_up == 1
        assert session.message(1).status is MessageStatus.INTERRUPTED

    def test_a_context_too_long_is_tried_again_with_fewer_pairs(self, session, with_model):
        assistant, model = with_model(
            "Five working days [1].",
            "Twelve working days [2].",
            [ContextTooLong("too long")],
            "Five working days [1].",
        )
        list(assistant.ask(session, "How long do refunds take?"))
        list(assistant.ask(session, "How long do refunds from abroad take?"))

        events = list(assistant.ask(session, "How long do refunds take?"))

        assert isinstance(events[-1], Finished)
        refused, accepted = model.requests[-2:]
        assert len(refused.messages) - len(accepted.messages) == 2

    def test_a_context_too_long_even_alone_is_a_failure(self, session, with_model):
        assistant, _ = with_model([ContextTooLong("too long")])

        events = list(assistant.ask(session, "How long do refunds take?"))

        assert isinstance(events[-1].error, ContextTooLong)

    def test_markers_of_documents_reach_it_neutralised(self, session, with_model):
        assistant, model = with_model("It weighs 410 g [1].")

        list(assistant.ask(session, "How many ports has the Aero 5?"))

        sent = model.requests[0].messages[-1].content
        assert "four ports" in sent
        assert "[7]" not in sent

    def test_a_bug_of_ours_ends_the_answer_and_is_not_swallowed(self, session, with_model):
        assistant, _ = with_model([ZeroDivisionError("bug")])

        with pytest.raises(ZeroDivisionError):
            list(assistant.ask(session, "How long do refunds take?"))
        assert session.message(1).status is MessageStatus.FAILED
        assert "bug" not in session.message(1).error

    def test_a_session_deleted_meanwhile_ends_the_turn_with_a_message(self, session, with_model):
        assistant, _ = with_model("Refunds take five working days [1]. And so on.")
        events = assistant.ask(session, "How long do refunds take?")
        while not isinstance(next(events), Text):
            pass
        session.delete()

        rest = list(events)

        assert isinstance(rest[-1], Failed)


class Counted:
    """Answers questions about a number from a snapshot, and no other."""

    def answer(self, session, question, resolution):
        if "how many" not in question.lower():
            return None
        snapshot = Source(0, "table:one", "", "parts.csv", "Parts", "", (), "| n |", "| n |", "0")
        (source,) = session.register_sources([snapshot])
        return DirectAnswer(f"There are 12 parts {source.marker}. [99]", (source,), "tables")


class TestDirectAnswers:
    @pytest.fixture
    def assistant(self, application, with_model):
        assistant, model = with_model("Five working days [1].")
        assistant._answering = Answering(
            ModelWriter(model), None, beside=DirectSources([Counted()])
        )
        return assistant

    def test_need_no_writer_and_are_kept_like_any_other(self, assistant, session):
        events = list(assistant.ask(session, "How many parts are there?"))

        kinds = [type(event) for event in events]
        assert kinds == [Resolved, Sources, Text, Cited, Finished]
        assert session.message(1) == events[-1].message
        assert session.message(1).answer.model == "tables"

    def test_no_number_leaves_that_the_session_does_not_know(self, assistant, session):
        finished = list(assistant.ask(session, "How many parts are there?"))[-1]

        assert finished.message.content.strip() == "There are 12 parts [1]."
        assert [citation.number for citation in finished.message.answer.citations] == [1]

    def test_a_snapshot_keeps_its_number(self, assistant, session):
        list(assistant.ask(session, "How many parts are there?"))
        list(assistant.ask(session, "And how many parts now?"))

        assert session.read().source_count == 1

    def test_leave_other_questions_to_the_writer(self, assistant, session):
        finished = list(assistant.ask(session, "How long do refunds take?"))[-1]

        assert "Five working days" in finished.message.content


class TestRegenerate:
    def test_writes_the_last_answer_anew_under_the_same_index(self, session, with_model):
        assistant, _ = with_model([ModelUnavailable("down")], "Five working days [1].")
        list(assistant.ask(session, "How long do refunds take?"))

        finished = list(assistant.regenerate(session, 1))[-1]

        assert isinstance(finished, Finished)
        assert [m.content for m in session.messages()] == [
            "How long do refunds take?",
            "Five working days [1].",
        ]

    def test_is_refused_at_once_for_an_earlier_answer(self, session, with_model):
        assistant, _ = with_model("One [1].", "Two [1].")
        list(assistant.ask(session, "How long do refunds take?"))
        list(assistant.ask(session, "How much does the Aero 5 weigh?"))

        with pytest.raises(Conflict):
            assistant.regenerate(session, 1)


def test_words_alone_answer_while_the_vectors_are_away_and_say_so(tmp_path, monkeypatch):
    with World(tmp_path) as world:

        def away(*_, **__):
            raise ModelUnavailable("No embedding server answers.")

        monkeypatch.setattr(world.application.retriever, "search", away)
        answer = world.ask("How much does the Aero 5 weigh?", reply("It weighs 120 g [1]."))

    assert [notice["kind"] for notice in answer["notices"]] == ["words_alone"]
    assert answer["citations"][0]["n"] == 1


def test_what_a_client_wants_reaches_the_model(tmp_path):
    with World(tmp_path) as world:
        world._behave([reply("It weighs 120 g [1].")])
        body = {"messages": [{"role": "user", "content": "How much does the Aero 5 weigh?"}]}
        wishes = {"max_tokens": 33, "temperature": 0.9, "stop": ["END"]}
        world.client.post("/v1/chat/completions", json=body | wishes)

    sent = world.server.requests[0].body
    assert {key: sent[key] for key in wishes} == wishes


class TestAnAnswerOfNoUse:
    """The passages stand first where a model's answer is surely of no use, and it stays below."""

    @pytest.fixture
    def asking(self, application):
        def asking(*replies):
            plain = application.assistant
            writer = ModelWriter(ScriptedModel(*replies))
            answering = Answering(writer, fallback=CardWriter(HashEmbedder().embed))
            parts = (application.retriever, plain._followups, plain._memory, answering)
            return Assistant(*parts, limits=TurnLimits())

        return asking

    def test_the_passages_stand_first_and_the_model_below(self, session, asking):
        said = "Penguins huddle together on the southern ice shelf during long winters [1]."

        *_, discarded, text, finished = asking(said).ask(session, "When are refunds paid?")

        answer = finished.message.answer
        assert answer.set_aside == SetAside(said, ELSEWHERE)
        assert "working days" in answer.text
        assert answer.text.index("working days") < answer.text.index("Penguins")
        assert (discarded.reason, text.text) == (ELSEWHERE, answer.text)
        for citation in answer.citations:
            assert answer.text[citation.start : citation.end] == f"[{citation.number}]"
        assert answer.citations[-1].verdict is not Verdict.SUPPORTED
        assert session.message(1).answer == answer

    def test_the_same_answer_to_another_question_is_set_aside(self, session, asking):
        said = "Refunds are paid within five working days [1]."
        assistant = asking(said, said)

        first = list(assistant.ask(session, "How long do refunds take?"))[-1]
        second = list(assistant.ask(session, "What does the Aero 5 weigh?"))[-1]

        assert first.message.answer.set_aside is None
        assert second.message.answer.set_aside.reason == REPEATED

    def test_the_same_answer_with_a_word_of_the_other_question_is_set_aside(self):
        said = "A refund is paid within five days after the parcel has come back [1]."
        earlier = [("How long does a refund take?", said)]

        assert (
            weakness(
                "And a parcel without an RMA number?", Answer(said.replace(" [1]", "")), {}, earlier
            )
            == REPEATED
        )  # whatever numbers stand in it
        earlier.append(("What discount do schools get?", "12 % [1]."))
        assert not weakness("And hospitals?", Answer("12 % [1]."), {}, earlier)
        for question, is_repeated in {
            "What happens to a parcel without an RMA number on it?": True,
            "When is it paid after the parcel has come?": False,
        }.items():
            assert (weakness(question, Answer(said), {}, earlier) == REPEATED) is is_repeated

    def test_an_answer_without_a_number_in_the_words_of_a_source_stays(self, application):
        hits = application.retriever.search("Refunds", EVERYTHING, limit=1)
        passage = "Touch the top once to mute the microphone; the ring turns red then."
        source = replace(as_source(hits[0], 1), passage=passage, text=passage)
        asked, said = "How is it silenced?", "Touch the top once; the ring turns red."

        assert weakness(asked, Answer(said), {1: source}, ()) == ""
        other = "Push a button until the lamp turns green."
        assert weakness(asked, Answer(other), {1: source}, ()) in (BESIDE_THE_POINT, ELSEWHERE)
        idle = "I am a helpful assistant and I love to help you with all things."
        assert weakness(asked, Answer(idle), {1: source}, ()) == ELSEWHERE
        assert weakness(asked, Answer("Touch the top."), {1: source}, ()) == ""

    def test_words_about_nothing_that_was_found_are_set_aside_beside_another_language(
        self, application
    ):
        hits = application.retriever.search("Refunds", EVERYTHING, limit=1)
        german = "Die Rücksendung kostet nichts, und das Geld kommt nach zwei Wochen zurück."
        sources = {1: as_source(hits[0], 1), 2: replace(as_source(hits[0], 2), passage=german)}
        said = "Thank you for a message that was a pleasure to read, I hope all goes well [1]."
        cited = Answer(said, (Citation(1, said.index("["), len(said) - 1),))
        in_german = Answer(
            "Freundliche Grüße und viele bunte Blumen zum Geburtstag [1].", cited.citations
        )

        assert weakness("How long does a refund take?", cited, sources, ()) == ELSEWHERE
        assert weakness("How long does a refund take?", in_german, sources, ()) == ""

    def test_where_nothing_was_found_nothing_stands_first(self):
        said = "It lands at the northern harbour in the first week of June with twelve people."

        assert weakness("Where does it fly?", Answer(said), {}, (), HashEmbedder()) == ""

    @pytest.mark.parametrize(
        ("said", "is_weak"),
        [
            ("Make sure that everything is tried by anybody [1].", True),
            ("No, it does not [1].", False),
            ("Refunds are made sure of [1].", False),  # a word of the question
            ("14 days, if sure and tried [1].", False),  # a figure that was found
        ],
    )
    def test_what_its_source_does_not_speak_of_is_set_aside(self, application, said, is_weak):
        hits = application.retriever.search("Refunds", EVERYTHING, limit=1)
        source = replace(as_source(hits[0], 1), passage="It is paid within 14 days.")
        off = Citation(1, said.index("["), len(said) - 1, Verdict.OFF_SUBJECT)

        told = weakness("How long do refunds take?", Answer(said, (off,)), {1: source}, ())

        assert bool(told) is is_weak

    @pytest.mark.parametrize(
        ("number", "more", "reason"),
        [
            (5, "", LATER),
            (2, "", ""),  # a card shows it open
            (5, " The warranty of the Aero 5 Pro is 36 months.", ""),
        ],
    )
    def test_a_copy_of_what_was_found_last_is_set_aside(self, application, number, more, reason):
        hits = application.retriever.search("Refunds", EVERYTHING, limit=1)
        right = "The warranty of the Aero 5 Pro ends after 36 months."
        passages = [right] * 4 + [
            "Our deck was made in spring for dealers, shows all prices of the range, and changes "
            "every January with the new catalogue, the slides and the speakers." + more
        ]
        sources = {
            n: replace(as_source(hits[0], n), passage=text, text=text)
            for n, text in enumerate(passages, start=1)
        }
        text = f"{passages[-1].rstrip('.')} [{number}]."
        at = text.index("[")
        cited = (Citation(number, at, at + 3, Verdict.SUPPORTED),)

        said = weakness(
            "How long is the warranty of the Aero 5 Pro?", Answer(text, cited), sources, ()
        )

        assert said == reason

    @pytest.mark.parametrize(
        "said",
        [
            "Refunds are paid within five working days [1].",
            "Five working days [1].",
            "You get your money back after about a working week once the parcel is here [1].",
            "Refunds take fifty working days [1].",
        ],
    )
    def test_an_answer_that_may_be_right_stays(self, session, asking, said):
        finished = list(asking(said).ask(session, "How long do refunds take?"))[-1]

        assert finished.message.answer.set_aside is None
        assert finished.message.content == said
