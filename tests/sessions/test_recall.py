"""Evicted turns come back when a question bears on them."""

import pytest

from rag.errors import ModelUnavailable
from rag.records import ImportedMessage
from rag.sessions.recall import Recall, telling_words
from rag.sessions.store import SqlConversationStore
from tests.fakes import HashEmbedder

FACTS = {
    "warranty": "The Aero 5 has a warranty of 24 months [1].",
    "battery": "Its battery lasts 20 hours [2].",
    "colours": "It comes in red and blue [3].",
    "price": "The list price is 129 euros [4].",
    "database": "We decided to use PostgreSQL for the database [5].",
}


@pytest.fixture
def session(engine):
    session = SqlConversationStore(engine).create("ada")
    tell(session, FACTS)
    return session


def tell(session, facts):
    session.append(
        [
            message
            for topic, answer in facts.items()
            for message in (
                ImportedMessage("user", f"Tell me about the {topic}"),
                ImportedMessage("assistant", answer),
            )
        ],
        [],
    )


@pytest.fixture(params=["by-words", "by-words-and-meaning"])
def recall(request):
    return Recall(HashEmbedder() if request.param == "by-words-and-meaning" else None)


@pytest.mark.parametrize("topic", FACTS)
def test_what_did_you_say_about_it_finds_the_turn(session, recall, topic):
    found = recall.relevant(session, f"What did you say about the {topic}?", before=10, limit=1)

    assert [turn.answer.content for turn in found] == [FACTS[topic]]
    assert found[0].question.content == f"Tell me about the {topic}"
    assert found[0].question.index == 2 * list(FACTS).index(topic)


def test_an_absent_embedder_leaves_recall_to_the_words(session):
    class Away(HashEmbedder):
        is_away = False

        def embed(self, texts):
            if self.is_away:
                raise ModelUnavailable("The embedding server cannot be reached.")
            return super().embed(texts)

    embedder = Away()
    recall = Recall(embedder)
    recall.remember(session, session.messages(0, 4))
    embedder.is_away = True

    recall.remember(session, session.messages(4, 8))
    found = recall.relevant(session, "What about the database?", before=10, limit=1)

    assert [turn.answer.content for turn in found] == [FACTS["database"]]
    embedder.is_away = False
    recall.remember(session, session.messages(8, 10))
    assert not session.without_vectors(before=10, limit=10)


def test_turns_that_are_still_in_the_context_are_left_out(session, recall):
    assert recall.relevant(session, "What about the database?", before=8, limit=3) == []


@pytest.mark.parametrize(
    ("question", "before", "limit"),
    [
        pytest.param("What did you say before?", 10, 3, id="nothing-to-look-up"),
        pytest.param("Tell me about zeppelins", 10, 3, id="never-talked-of"),
        pytest.param("warranty", 0, 3, id="nothing-evicted"),
        pytest.param("warranty", 10, 0, id="no-room"),
    ],
)
def test_nothing_comes_back_where_nothing_fits(session, recall, question, before, limit):
    assert recall.relevant(session, question, before=before, limit=limit) == []


def test_the_best_turns_come_first_and_those_that_share_nothing_not_at_all(engine, recall):
    session = SqlConversationStore(engine).create("ada")
    tell(
        session,
        {
            "Aero 5 warranty": "The warranty of the Aero 5 is 24 months [1].",
            "shipping": "Shipping takes 3 days and is free above 50 euros [2].",
            "Nimbus warranty": "The Nimbus has a warranty of 36 months [3].",
        },
    )

    found = recall.relevant(session, "How long is the warranty of the Nimbus?", before=6, limit=3)

    assert found[0].answer.content.startswith("The Nimbus")
    assert all("Shipping" not in turn.answer.content for turn in found)


def test_a_question_without_an_answer_is_not_recalled(engine, recall):
    session = SqlConversationStore(engine).create("ada")
    session.begin("Is there a warranty?")

    assert recall.relevant(session, "warranty", before=2, limit=3) == []


def test_saved_vectors_are_used_and_not_computed_again(session):
    embedder = HashEmbedder()
    recall = Recall(embedder)
    recall.remember(session, session.messages())
    recall.remember(session, session.messages())
    assert len(embedder.embedded) == 10

    recall.relevant(session, "And the warranty?", before=10, limit=1)

    assert embedder.embedded[10:] == ["And the warranty?"]


def test_looking_back_writes_nothing_and_embeds_nothing_that_cannot_be_compared(session):
    embedder = HashEmbedder()

    found = Recall(embedder).relevant(session, "And the warranty?", before=10, limit=1)

    assert found[0].answer.content == FACTS["warranty"]
    assert session.vectors(range(10)) == {}
    assert embedder.embedded == []


def test_what_an_import_brought_along_is_caught_up_on_bit_by_bit(engine, monkeypatch):
    session = SqlConversationStore(engine).create("ada")
    monkeypatch.setattr("rag.sessions.recall.CAUGHT_UP", 20)
    tell(session, {f"thing {n}": f"It is number {n} [1]." for n in range(30)})
    recall = Recall(HashEmbedder(dimensions=8))

    counts = []
    for _ in range(4):
        recall.remember(session, session.messages(56))
        counts.append(len(session.vectors(range(60))))

    assert counts == [20, 40, 60, 60]


def test_meaning_decides_between_turns_that_share_as_many_words(engine):
    session = SqlConversationStore(engine).create("ada")
    tell(session, {"red hat": "It is a hat [1].", "red coat": "It is a coat [2]."})
    recall = Recall(HashEmbedder())
    recall.remember(session, session.messages())

    found = recall.relevant(session, "Which coat was red, the red coat?", before=4, limit=1)

    assert found[0].answer.content == "It is a coat [2]."


def test_without_an_embedder_nothing_is_remembered(session):
    Recall().remember(session, session.messages())

    assert session.vectors(range(10)) == {}


def test_a_message_of_another_role_does_not_hide_the_answer(engine, recall):
    session = SqlConversationStore(engine).create("ada")
    session.append(
        [
            ImportedMessage("system", "Talk about the warranty."),
            ImportedMessage("user", "Is there a warranty?"),
            ImportedMessage("assistant", "Two years."),
        ],
        [],
    )

    found = recall.relevant(session, "warranty?", before=3, limit=3)

    assert [turn.answer.content for turn in found] == ["Two years."]


def test_words_that_mean_the_same_are_looked_up_where_few_messages_hold_those_asked(session):
    tell(session, {"attic": "The sofa in the attic cost 300 euros [6]."})

    found = Recall().relevant(session, "What did we pay for the couch?", before=12, limit=5)

    assert "The sofa in the attic cost 300 euros [6]." in [turn.answer.content for turn in found]


def test_a_turn_that_shares_one_word_is_recalled_beside_one_that_shares_all(session):
    found = Recall().relevant(
        session, "Tell me about the battery of the Aero 5, its warranty?", before=10, limit=5
    )

    assert {FACTS["battery"], FACTS["warranty"]} <= {turn.answer.content for turn in found}


def test_words_about_the_conversation_itself_are_not_looked_up():
    words = telling_words("What did you say earlier about the Aero-5's price in the U.S.?")

    assert words == ["aero-5", "price", "u.s."]
