"""Earlier statements come back before the question that they answer, in both fronts."""

from datetime import UTC, datetime

import numpy as np
import pytest

from rag import HistoryTrimmer
from rag.memory import Memory, MemoryRules
from rag.records import ImportedMessage, Message, MessageStatus, Role, Source
from rag.sessions.recall import Recall, RecalledTurn
from rag.sessions.store import SqlConversationStore
from rag.summaries.compact import Compactor
from rag.summaries.recall import LATER, RECALLED, RecallIndex, index_of, put_back
from rag.summaries.required import stated_lines
from rag.tokens import count_tokens
from rag.turns.answering import Shown

TALK = "There is a lot to be said for either side, and it depends on many things. " * 4


class Meaning:
    """An embedder that knows two subjects, whatever the words."""

    name, dimensions, max_tokens = "meaning", 2, 256

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]

    def embed(self, texts):
        seats = [any(word in text.casefold() for word in ("sofa", "couch")) for text in texts]
        return np.array([[1, 0] if seat else [0, 1] for seat in seats], dtype=np.float32)


def conversation(*answers):
    """The answers long ago, each asked for; more statements than a summary can quote; and talk."""
    rules = (f"Rule {n} of the house binds {n + 9} people here [{n + 20}]." for n in range(40))
    said = [("Tell me more, please.", answer) for answer in [*answers, *rules]]
    said += [("And now?", f"{TALK} Number {n}.") for n in range(40)]
    return [
        {"role": role, "content": text}
        for pair in said
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def by_library(messages, question, *, embedder=None):
    """The last message that the library sends."""
    embed = embedder.embed if embedder else None
    trimmer = HistoryTrimmer(max_tokens=700, embed=embed)
    return trimmer.trim([*messages, {"role": "user", "content": question}]).messages[-1]["content"]


def by_application(engine, messages, question, *, embedder=None, sources=(), resolved=""):
    """The last message that the application sends."""
    memory = Memory(
        Compactor(None, count_tokens),
        Recall(embedder),
        rules=MemoryRules(),
        window=lambda: 1600,
        count=count_tokens,
    )
    session = SqlConversationStore(engine).create("ada")
    session.append([ImportedMessage(m["role"], m["content"]) for m in messages], [])
    memory.compact(session)
    turn = session.begin(question)
    shown = Shown(sources, resolved=resolved)
    return memory.prepare(session, turn, shown).messages[-1].content


FRONTS = pytest.mark.parametrize("front", ["library", "application"])


@pytest.fixture
def last_message(front, engine):
    def last(messages, question, **options):
        if front == "library":
            return by_library(messages, question, **options)
        return by_application(engine, messages, question, **options)

    return last


@FRONTS
class TestAnotherFigureForTheSame:
    def test_comes_with_the_earlier_one_newest_first_and_says_so(self, last_message):
        said = [
            "The Aero 5 weighs 120 g [1].",
            "Mats are grey [2].",
            "The Aero 5 weighs 125 g [3].",
        ]

        last = last_message(conversation(*said), "How heavy is the Aero 5?")

        assert f"{said[2]}\n{LATER}\n{said[0]}" in last

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The Aero 5 weighs 120 g [1].", "The Aero 6 weighs 125 g [2]."),
            ("The Aero 5 weighs 120 g [1].", "The Aero 5 weighs 120 g [2]."),
            ("The Aero 5 runs 20 hours in summer [1].", "The Aero 5 runs 12 hours in winter [2]."),
            ("The Aero 5 weighs 120 g [1].", "The Aero 5 costs 125 euros [2]."),
            (
                "As the house book says, the fan in the garage weighs 7 kg [1].",
                "As the house book says, the lamp in the garage weighs 9 kg [2].",
            ),
            (
                "The Aero 5 runs 20 hours with a case [1].",
                "The Aero 5 runs 22 hours without a case [2].",
            ),
        ],
    )
    def test_is_not_said_of_what_differs_in_more(self, last_message, one, other):
        last = last_message(
            conversation(one, other, "Mats are grey [3]."), "What about the Aero 5 or the garage?"
        )

        assert LATER not in last


@pytest.mark.parametrize(
    "question", ["How heavy is the couch?", "What colour do mats have?", "zeppelins", "2 or 3?"]
)
def test_an_index_of_turns_ranks_as_one_that_grew_with_them(question):
    said = ["The sofa weighs 20 kg [1].", "Mats are grey, 2 of them [2].", "A couch is no sofa."]
    ended = (MessageStatus.COMPLETE, datetime.now(UTC))
    turns = [
        RecalledTurn(
            Message(2 * n, n, Role.USER, f"And {n}?", *ended),
            Message(2 * n + 1, n, Role.ASSISTANT, text, *ended),
        )
        for n, text in enumerate(said)
    ]
    grown = RecallIndex()
    for turn in turns:
        asked, answer = turn.question.content, turn.answer
        grown.add(stated_lines(answer.index, answer.content, asked, count_tokens), asked)

    index = index_of(turns, count_tokens, question)

    best = index.best(question)
    assert [line.text for line in best] == [line.text for line in grown.best(question)]


@FRONTS
def test_what_only_the_meaning_leads_to_comes_back(front, engine):
    ends = "as everybody who lives here knows and says"
    said = [f"The sofa is grey, {ends} [1].", f"Mats are cheap, {ends} [2].", "Dogs bark [3]."]
    messages = conversation(*said)
    question = "Which colour does that couch have?"
    options = {"embedder": Meaning()}

    if front == "library":
        last = by_library(messages, question, **options)
    else:
        last = by_application(engine, messages, question, **options)

    # The background has embedded what was summarised.
    assert said[0] in last


def test_of_a_turn_that_is_put_back_what_neither_words_nor_meaning_lead_to_stays_away():
    ended = (MessageStatus.COMPLETE, datetime.now(UTC))
    asked = Message(0, 0, Role.USER, "And?", *ended)
    answer = Message(1, 0, Role.ASSISTANT, "The sofa is grey [1]. All dogs here bark [2].", *ended)
    question = "Which colour does that couch have?"

    turn = RecalledTurn(asked, answer, (0.9, 0.1))
    index = index_of([turn], count_tokens, question)

    best = index.best(question)
    assert [line.text for line in best] == ["The sofa is grey [1]."]


def test_recall_has_room_of_its_own_beside_sources_that_take_all_they_get(engine):
    text = "The harbour wall of the town was built of stone. " * 200
    sources = [Source(n, f"c{n}", "d", "h.md", "H", "", (), text, text, "") for n in range(90, 98)]
    messages = conversation("The Aero 5 weighs 120 g, a bit more than the Aero 4 [1].", "Mats [2].")

    last = by_application(engine, messages, "How heavy is the Aero 5?", sources=sources)

    assert last.startswith(RECALLED)
    assert "The Aero 5 weighs 120 g" in last
    assert "harbour wall" in last


@pytest.mark.parametrize(
    ("text", "is_told_again"),
    [
        pytest.param("In short: the Aero 5\nweighs 120 g. It is red.", False, id="word for word"),
        pytest.param("The Aero 5 weighs 125 g.", True, id="another figure"),
    ],
)
def test_what_stands_in_its_own_source_beside_the_question_is_not_told_twice(
    engine, text, is_told_again
):
    source = Source(1, "c1", "d", "h.md", "H", "", (), text, text, "")
    messages = conversation("the Aero 5 weighs 120 g [1].", "Mats are grey [2].")

    last = by_application(engine, messages, "How heavy is the Aero 5?", sources=[source])

    assert ("weighs 120 g [1]." in last) is is_told_again


def test_a_follow_up_stands_as_it_was_resolved_in_the_last_message(engine):
    messages = conversation("The Aero 5 weighs 120 g [1].", "Mats are grey [2].")

    last = by_application(
        engine, messages, "And its weight?", resolved="What is the weight of the Aero 5?"
    )

    assert last.endswith(
        "And its weight?\nIt was searched for as: What is the weight of the Aero 5?"
    )
    assert "The Aero 5 weighs 120 g [1]." in last, "recall looks for what is meant"


@FRONTS
@pytest.mark.parametrize(
    "question",
    [
        pytest.param("What did we pay for the couch under the roof?", id="in other words"),
        pytest.param("What did we pay for the couch in the house?", id="with a word of all else"),
    ],
)
def test_a_statement_comes_back_when_it_is_asked_for_in_other_words(last_message, question):
    told = "The sofa in the attic was bought for 300 euros [1]."

    assert told in last_message(conversation(told), question)


def put_back_of(said, question, *, room=400):
    index = RecallIndex()
    for place, text in enumerate(said):
        index.add(stated_lines(2 * place + 1, text, "And?", count_tokens), "And?")
    return put_back(index, question, before=10**6, room=room, count=count_tokens)[0]


def test_another_figure_comes_along_however_many_statements_bear_more_on_the_question():
    question = "How heavy is the Aero 5?"
    parts = [f"Of the Aero 5, part {n} is heavy [{n}]." for n in range(10, 70)]
    index = RecallIndex()
    for place, text in enumerate(["The Aero 5 weighs 125 g [1].", *parts]):
        asked = question if place else "And?"
        index.add(stated_lines(2 * place + 1, text, asked, count_tokens), asked)
    index.add(stated_lines(901, "The Aero 5 weighs 120 g [2].", question, count_tokens), question)

    text, _ = put_back(index, question, before=10**6, room=4000, count=count_tokens)

    assert f"The Aero 5 weighs 120 g [2].\n{LATER}\nThe Aero 5 weighs 125 g [1]." in text


class TestRoomForStatementsThatTellMore:
    def test_one_said_again_in_a_frame_gives_way_to_another(self):
        said = [
            "The mirror in the hall weighs 8 kg [2].",
            "As the house book says, the lamp in the hall weighs 7 kg [1].",
            "- the lamp in the hall weighs 7 kg [1]",
            "The lamp in the hall weighs 7 kg. [1]",
        ]

        text = put_back_of(said, "How heavy is it in the hall?", room=50)

        assert "mirror in the hall weighs 8 kg [2]" in text
        assert text.count("lamp in the hall") == 1

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The probe starts at -15 °C [1].", "The probe starts at 15 °C [1]."),
            ("It is not true that the probe floats [1].", "Probes sink, all of them [1]."),
            ("The probe floats in salt water [1].", "The probe floats in fresh water [1]."),
        ],
    )
    def test_what_says_something_else_about_the_same_number_stays(self, one, other):
        text = put_back_of([one, other], "What does the probe do, start, float or sink?")

        assert one in text
        assert other in text

    def test_what_only_looks_like_an_echo_comes_last_but_comes(self):
        said = ["The probe floats [1].", "It is not true that the probe floats [1]."]

        assert all(each in put_back_of(said, "Does the probe float?") for each in said)


def test_a_word_that_is_small_in_another_language_only_is_looked_up():
    said = [f"The {thing} in the hall weighs 7 kg [1]." for thing in ("lamp", "bin", "rug")]

    text = put_back_of(said, "Where is the bin?", room=60)

    assert "bin in the hall" in text
    assert "lamp" not in text
