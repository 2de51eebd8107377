import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answers.parts import MOST_PARTS, Part, parts_of, searched_apart


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        pytest.param(
            "What does the Aero 5 Pro weigh and what does it cost?",
            ["What does the Aero 5 Pro weigh", "what does Aero 5 Pro cost?"],
            id="a pronoun",
        ),
        pytest.param(
            "What is the weight of the Aero 5, and what is its price?",
            ["What is the weight of the Aero 5", "what is Aero 5's price?"],
            id="a possessive",
        ),
        pytest.param(
            "How heavy is the Aero 5 and which colours are there?",
            ["How heavy is the Aero 5", "which colours are there (Aero 5)?"],
            id="no word for it",
        ),
        pytest.param(
            "How long do refunds take and how do I reset the Aero 5?",
            ["How long do refunds take", "how do I reset the Aero 5?"],
            id="two subjects",
        ),
        pytest.param(
            "How do I change Bixby's voice and what is user information?",
            ["How do I change Bixby's voice", "what is user information?"],
            id="no model",
        ),
        pytest.param(
            "How do I pair the remote? Where is the menu?",
            ["How do I pair the remote?", "Where is the menu?"],
            id="two sentences",
        ),
    ],
)
def test_several_questions_are_taken_apart(question, parts):
    assert [part.alone for part in parts_of(question)] == parts


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("When and where was it built?", id="one verb"),
        pytest.param("What is the difference between how A works and how B works?", id="compared"),
        pytest.param("How do I press and hold the button?", id="two verbs"),
        pytest.param("How long do refunds take and who approves them?", id="no name to stand for"),
        pytest.param("Is the Aero 5 or the Aero 7 lighter and is it cheaper?", id="two names"),
        pytest.param("My router is on and is blinking. Why?", id="a statement first"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_one_question_stays_whole(question):
    assert parts_of(question) == [Part("", question)]


def test_each_part_is_kept_as_it_was_asked():
    parts = parts_of("How heavy is the Aero 5 and which colours are there?")

    assert [part.asked for part in parts] == ["How heavy is the Aero 5", "which colours are there?"]


@given(st.lists(st.sampled_from(["what is it", "and", "how", "Aero 5", "?", " ", "[1]"])))
def test_any_text_gives_a_few_parts(words):
    assert 1 <= len(parts_of(" ".join(words))) <= MOST_PARTS


class TestWhatIsSearchedApart:
    def test_is_nothing_of_a_question_that_asks_one_thing(self):
        assert searched_apart("How long do refunds from abroad take?") == []

    def test_are_the_parts_of_a_question_after_the_question_itself(self):
        question = "How long do refunds take and how do I reset the Aero 5?"

        searched = searched_apart(question)

        assert [words for _, words in searched] == [
            question, "How long do refunds take", "how do I reset the Aero 5?",
        ]  # fmt: skip

    def test_are_the_products_that_stand_side_by_side_each_with_the_whole_question(self):
        searched = searched_apart("Is the tuli or the mora cheaper?", ("tuli", "mora"))

        assert [words for _, words in searched] == [
            "Is the tuli or the mora cheaper?", "Is the tuli cheaper?", "Is the mora cheaper?",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "question",
        [
            pytest.param("Can a tuli replace a mora?", id="more than a conjunction between them"),
            pytest.param("Is the Tuli lighter than other grinders?", id="one"),
            pytest.param("Is the Oven or the Kettle cheaper?", id="names of nobody's documents"),
        ],
    )
    def test_are_not_products_that_are_merely_named(self, question):
        assert searched_apart(question, ("tuli", "mora", "Tuli")) == []


def test_a_name_that_only_the_library_knows_is_what_the_next_part_is_about():
    question = "How much does the Cantoro One cost, and how heavy is it?"

    assert [part.alone for part in parts_of(question, ["Cantoro One", "Cantoro One+"])] == [
        "How much does the Cantoro One cost", "how heavy is Cantoro One?",
    ]  # fmt: skip
