"""Follow-ups: what is found says whether a question goes on from the last one, in any language."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chat.follow_ups import NO_TURN, FollowUps, LastTurn, source_numbers, topic_of
from rag.language.names import TypedNames
from rag.records import EVERYTHING, Chunk, Hit, Source

LEXICON = ("Aero 5", "Aero 5 Pro", "Aero 7", "Nimbus Router X2", "Nimbus Router X2 Lite")
HEAVY = "How heavy is the Aero 5?"
BATTERY = "What is the battery life of the Aero 5?"
MESH = "Does the Nimbus Router X2 support mesh?"


def source(section="Rent", document="lease"):
    return Source(1, "c", document, "lease.md", "Lease", "§", (section,), "text", "text", "hash")


def hit(section, relevance, document="lease"):
    chunk = Chunk(
        section, document, "lease.md", "Lease", 0, 0, (section,), "§", "text of it", 0, 10
    )
    return Hit(chunk, 1.0, "text of it", 0, 10, relevance=relevance)


def after(topic, section="Rent"):
    return LastTurn(topic, source(section), frozenset({"lease"}))


class Searches:
    """What each search finds, and what was searched."""

    def __init__(self, *found):
        self._found, self.queries = list(found), []

    def __call__(self, resolution):
        self.queries.append(resolution.searched)
        return self._found.pop(0)


def resolve(question, last, lexicon=(), **options):
    return FollowUps(lexicon=lambda readable: lexicon, **options).resolve(
        question, last, EVERYTHING
    )


def searched(question, last, *found, **options):
    followups, search = FollowUps(**options), Searches(*found)
    resolution = followups.resolve(question, last, EVERYTHING)
    return (*followups.search(question, last, resolution, search), search.queries)


class TestWhatIsFound:
    """The section that answered last comes first, and the question alone has nothing far better."""

    @pytest.mark.parametrize(
        ("topic", "question"),
        [
            ("When is the rent due?", "And how much is it?"),
            ("Wann ist die Miete fällig?", "Und wie hoch ist sie?"),
            ("Quand faut-il payer le loyer ?", "Et les charges ?"),
            ("¿Cuándo se paga el alquiler?", "¿Y cuánto es?"),
        ],
    )
    def test_makes_a_follow_up_in_any_language(self, topic, question):
        found = [hit("Rent", 0.2), hit("Deposit", 0.3)]

        resolution, hits, queries = searched(question, after(topic), found)

        assert resolution.query == f"{topic} {question}"
        assert (resolution.is_followup, resolution.method) == (True, "rules")
        assert (hits, queries) == (found, [question])  # the words that were asked lead the search

    def test_elsewhere_leaves_the_question_alone(self):
        found = [hit("Sick pay", 0.6, "handbook"), hit("Rent", 0.6)]

        resolution, hits, _ = searched("When must I call in?", after("Rent?"), found)

        assert (resolution.query, resolution.is_followup) == ("When must I call in?", False)
        assert hits == found

    def test_far_better_elsewhere_leaves_it_alone_too(self):
        found = [hit("Rent", 0.05), hit("Sick pay", 0.8, "handbook")]

        assert not searched("Sick pay?", after("Rent?"), found)[0].is_followup

    def test_by_no_word_of_the_question_is_looked_for_with_the_last_one(self):
        alone, together = [hit("Keys", 0.01)], [hit("Rent", 0.7)]

        resolution, hits, queries = searched("How much is it?", after("Rent?"), alone, together)

        assert resolution.query == queries[1] == "Rent? How much is it?"
        assert hits == together

    def test_of_something_that_is_not_there_is_no_follow_up(self):
        nothing = [hit("Rent", 0.01), hit("Keys", 0.01)]

        resolution, _, queries = searched(
            "What is the capital of Mongolia?", after("Rent?"), nothing
        )

        assert (resolution.is_followup, len(queries)) == (False, 1)

    def test_neither_way_stays_what_it_was(self):
        alone, together = [hit("Keys", 0.01)], [hit("Deposit", 0.7)]

        resolution, hits, _ = searched("How much is it?", after("Rent?"), alone, together)

        assert (resolution.query, hits) == ("How much is it?", alone)

    def test_is_searched_once_where_the_conversation_begins(self):
        resolution, _, queries = searched("How much is it?", NO_TURN, [hit("Rent", 0.01)])

        assert (resolution.query, queries) == ("How much is it?", ["How much is it?"])


@pytest.mark.parametrize(
    ("question", "topic", "expected"),
    [
        ("and the Pro?", BATTERY, "What is the battery life of the Aero 5 Pro?"),
        ("and the X2 Lite?", MESH, "Does the Nimbus Router X2 Lite support mesh?"),
        ("Aero 7?", HEAVY, "How heavy is the Aero 7?"),
        ("and the aero 7?", HEAVY, "How heavy is the Aero 7?"),
        ("and the Nimbus Router X2 Lite?", MESH, "Does the Nimbus Router X2 Lite support mesh?"),
        ("Und der Pro?", "Wie schwer ist der Aero 5?", "Wie schwer ist der Aero 5 Pro?"),
        ("Et le Pro ?", "Combien pèse le Aero 5 ?", "Combien pèse le Aero 5 Pro ?"),
    ],
)
def test_a_name_alone_takes_the_place_of_the_last_ones(question, topic, expected):
    resolution = resolve(question, after(topic), LEXICON)

    assert (resolution.query, resolution.is_followup) == (expected, True)
    assert resolution.searched == expected


@pytest.mark.parametrize(
    "question", ["Does the Aero 7 have Bluetooth?", "Wie schwer ist das Aero 7?"]
)
def test_a_question_that_names_its_product_is_led_by_nothing(question):
    resolution = resolve(question, after("Is the Aero 5 waterproof?"), LEXICON)

    before = resolution.before
    assert (resolution.query, before.texts) == (question, ())
    assert before.documents == {"lease"}  # which are preferred all the same


def test_the_last_question_leads_any_other_search_a_little():
    before = resolve("Is there a warranty?", after(HEAVY)).before

    assert [text for text, _ in before.texts] == [HEAVY]
    assert all(0 < weight < 1 for _, weight in before.texts)
    assert before.documents == {"lease"}


def test_what_is_asked_on_from_does_not_grow_with_each_question():
    assert topic_of("And the charge?", "Rent? And the charge?") == "Rent?"
    assert (
        topic_of("and the Pro?", "How heavy is the Aero 5 Pro?") == "How heavy is the Aero 5 Pro?"
    )
    assert len(topic_of("x" * 9000, "x" * 9000)) < 1000


def test_follow_ups_can_be_switched_off():
    assert resolve("And the Pro?", after(HEAVY), LEXICON, is_enabled=False).query == "And the Pro?"


class TestWordsThatNobodyKnows:
    """Neither the library nor a language has them."""

    @pytest.mark.parametrize(
        ("question", "is_led"), [("asdf qwer zxcv", False), ("why qwer?", True), ("rent?", True)]
    )
    def test_point_at_nothing_that_was_said(self, question, is_led):
        resolution = resolve(question, after(HEAVY), is_word=lambda word, readable: word == "rent")

        assert bool(resolution.before.texts) is is_led


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        pytest.param("Tell me more about [3]", (3,), id="one"),
        pytest.param("Compare [2, 5] and [2]", (2, 5), id="several"),
        pytest.param("What do [2-4] say?", (2, 3, 4), id="range"),
        pytest.param("What does source 12 say?", (12,), id="in-words"),
        pytest.param("Que dit la source 3 ?", (3,), id="in-french"),
        pytest.param("What is my_rows[3]?", (), id="index-of-an-array"),
    ],
)
def test_sources_that_a_question_names_are_shown_but_not_searched_for(question, numbers):
    resolution = resolve(question, after(HEAVY))

    assert resolution.source_numbers == source_numbers(question) == numbers
    assert resolution.query == question
    assert not numbers or "[" not in resolution.searched
    assert resolution.is_followup is bool(numbers)


def test_letters_that_grow_in_lower_case_do_not_shift_names():
    found = TypedNames(LEXICON).find("İİ: is the AERO 7 new?")

    assert [(name.text, name.start) for name in found] == [("AERO 7", 11)]


def test_a_lexicon_that_grows_is_read_again():
    names = ["Nimbus One"]
    followups, last = FollowUps(lexicon=lambda readable: names), after("Is the Nimbus One new?")
    before = followups.resolve("and the Twin?", last, EVERYTHING)

    names.append("Nimbus Twin")

    assert before.query != followups.resolve("and the Twin?", last, EVERYTHING).query
    assert followups.resolve("and the Twin?", last, EVERYTHING).query == "Is the Nimbus Twin new?"


@given(st.text(max_size=80), st.text(max_size=60), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=120, deadline=None)
def test_any_text_is_searched_and_nothing_of_it_is_lost(question, topic, there, elsewhere):
    found = [hit("Rent", there), hit("Deposit", elsewhere)]
    resolution, hits, _ = searched(
        question, after(topic), found, found, lexicon=lambda readable: LEXICON
    )

    assert resolution.query.endswith(question) or resolution.method == "rules"
    assert hits == found


@pytest.mark.parametrize("question", ["What about " + "in " * 200, "it " * 5000, "Aero " * 900])
def test_long_texts_are_resolved_all_the_same(question):
    assert resolve(question, after(BATTERY), LEXICON).query == question
