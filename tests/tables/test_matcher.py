"""What is claimed of rows, what is offered, and what is left alone."""

import pytest

from rag.documents.files import IncomingFile
from rag.errors import UserError
from rag.records import EVERYTHING, Resolution
from rag.settings import Settings
from rag.tables.answers import TableAnswers, is_sound
from rag.tables.matcher import TableWords, pieces_of, shortens
from rag.tables.plan import Filter, Key, Kind, Measure, Op, Order, TablePlan, in_words, offer_words
from tests.applications import application_of

CRATES = "Crate;Depot;Kind;Booked;Mass;Fee;Fragile\n" + "\n".join(
    f"C-{i};{('Aarhus', 'Brest', 'Chur')[i % 3]};{('glass', 'tools')[i % 2]};"
    f"2024-{i % 12 + 1:02}-1{i % 9};{20 + i * 7 % 90} kg;€{100 + i * 13 % 80};"
    f"{('yes', 'no')[i % 4 > 0]}"
    for i in range(80)
)
SEASONS = "Season,Title,Rating,Episodes\n" + "\n".join(
    f"{i},The part {i},{6 + i % 4}.5,{8 + i}" for i in range(1, 25)
)
SWITCHES = "Switch,Ports,Weight\nOsprey 8,8,310 g\nOsprey 24,24,3.6 kg\nHeron,8,540 g\n"
SCALED = "Company,Takings\nAlder,$1.2B\nBirch,$300M\nCedar,$45M\n"
TORQUES = "Size,Torque dry (Nm),Torque oiled (Nm)\nM6,10.4,8.3\nM8,25,20\nM10,50,40\n"
LAMPS = "Lamp,State,Stage,Direction\n" + "\n".join(
    f"L-{i},{('Standby', 'On', 'Off')[i % 3]},{('Not yet', 'All over')[i % 2]},"
    f"{('In', 'Out', 'Both', 'Out')[i % 4]}"
    for i in range(40)
)
FANS = "Fan,Power\n" + "\n".join(f"F-{i},{('On', 'Off')[i % 3 > 0]}" for i in range(40))
RIDERS = "Rider,Country\n" + "\n".join(f"Rider {i},{('US', 'IT', 'FR')[i % 3]}" for i in range(12))
RIDERS += "\n,FR\n,FR\n"  # a heading within a table names no rider
FILES = {
    "lamps.csv": LAMPS,
    "fans.csv": FANS,
    "riders.csv": RIDERS,
    "crates.csv": CRATES,
    "seasons.csv": SEASONS,
    "switches.csv": SWITCHES,
    "scaled.csv": SCALED,
    "torques.csv": TORQUES,
}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    files = [IncomingFile.from_bytes(name, text.encode()) for name, text in FILES.items()]
    list(application.ingestion.ingest(files))
    yield application
    application.stop()


@pytest.fixture
def claimed(application):
    """The plan in words, or "" where nothing may be claimed."""

    def claimed(question):
        sure = application.table_answers.claimed(
            application.table_answers.library.understand(question, EVERYTHING)
        )
        return in_words(sure.plan) if sure else ""

    return claimed


@pytest.mark.parametrize("day", ["30 February 2024", "31 June", "29 February 2023"])
def test_a_day_that_no_calendar_has_is_no_condition(claimed, day):
    assert claimed(f"How many crates were booked on {day}?") == ""


@pytest.mark.parametrize(("asked_for", "is_meant"), [("often", False), ("glass", True)])
def test_a_word_of_grammar_means_no_value_of_an_open_column(application, asked_for, is_meant):
    table = next(t for t in application.tables.tables(EVERYTHING) if "crates" in t.name)
    words = TableWords(table, {"Crate": ["Often", "glass"]}, None)
    question = ["which", "kind", "most", asked_for]

    pieces = pieces_of(question, words, set())

    assert any(piece.kind == "value" for piece in pieces) is is_meant


@pytest.mark.parametrize(
    ("question", "plan"),
    [
        ("How many crates are there?", "count of rows"),
        ("How many crates are fragile?", "count of rows with Fragile yes"),
        ("how many glass crates are in Brest?", "count of rows with Kind glass and Depot Brest"),
        ("how many crates have a mass above 40?", "count of rows with Mass above 40"),
        ("What is the total fee of crates in Chur?", "total Fee with Depot Chur"),
        ("average mass of the tools", "average Mass with Kind tools"),
        ("Which size has the highest dry torque?", "the Size with the highest Torque dry (Nm)"),
        ("What are the total takings?", "total Takings"),  # billions and millions of one unit
        ("Which crate is the heaviest?", "the Crate with the highest Mass"),
        ("top 3 crates by fee", "the 3 Crate with the highest Fee"),
        ("How many ports does the Osprey 24 have?", "Switch, Ports with Switch Osprey 24"),
        ("How many fans are off?", "count of rows with Power Off"),
        ("How many riders are from FR?", "count of rows with Country FR and Rider is filled"),
        ("How many different riders are there?", "count of different Rider"),
        ("How many lamps are off?", "count of rows with State Off"),
        ("How many lamps are both?", "count of rows with Direction Both"),
        ("How many lamps are all over?", "count of rows with Stage All over"),
        ("wie viele crates gibt es in Aarhus?", "count of rows with Depot Aarhus"),
    ],
)
def test_four_shapes_are_claimed_where_every_word_is_used(claimed, question, plan):
    assert claimed(question) == plan


@pytest.mark.parametrize(
    "question",
    [
        "How many crates were stolen in Brest?",  # a word that no table knows
        "What is the total fee of refurbished crates?",
        "How many seasons rated above 9 were cancelled?",
        "How many ports does the switch have?",  # of several
        "What is the total season?",  # numbers that name rows
        "What is the total weight of the switches?",  # grams beside kilograms
        "Which kind has the most crates?",  # a group: offered
        "fee by depot",
        "How many lamps are out?",
        "How many fans are on?",
        "How many lamps are on?",  # a word of grammar that is a value
        "How many riders are from US?",
        "Did C-4 or C-5 have the highest fee?",  # which of two
        "How many riders are from IT?",
    ],
)
def test_anything_else_is_not(claimed, question):
    assert claimed(question) == ""


@pytest.mark.parametrize(
    ("column", "kind", "may"),
    [
        ("Season", Kind.SUM, False),  # numbers that name rows
        ("Season", Kind.MAX, True),
        ("Rating", Kind.AVERAGE, True),
    ],
)
def test_a_models_plan_adds_up_no_more_than_words_may(application, column, kind, may):
    tables = application.tables.tables(EVERYTHING)
    table = next(t for t in tables if "Season" in {each.name for each in t.columns})

    assert is_sound(TablePlan(table.id, measures=(Measure(kind, column),)), table) is may


def test_seasons_are_counted_and_not_added_up(application, claimed):
    choices = application.table_answers.library.understand(
        "How many seasons are there?", EVERYTHING
    )

    assert not any(each.plan.measures[0].column == "Season" and each.is_sure for each in choices)


class TestOffers:
    @pytest.fixture
    def asked(self, application):
        session = application.store.create("ada")

        def asked(question):
            *_, end = application.assistant.ask(session, question)
            return end.message.answer

        return asked

    def test_are_buttons_in_plain_words_and_one_click_computes(self, asked):
        offers = [each.label for each in asked("total fee by depot").offers]

        assert offers == ["Add up Fee for each Depot"]
        assert asked(offers[0]).result is not None

    @pytest.mark.parametrize(
        ("code", "labels"),
        [
            ("en", ["How many in crates with Kind glass and Fee at most 2",
                    "Add up Fee for each Depot, highest first, the first 3",
                    "Crate with the lowest Fee", "How many in crates with Sealed",
                    "How many in crates without Sealed"]),
            ("de", ["Wie viele in crates mit Kind glass und Fee höchstens 2",
                    "Summe von Fee je Depot, größte zuerst, die ersten 3",
                    "Crate mit dem niedrigsten Wert bei Fee", "Wie viele in crates mit Sealed",
                    "Wie viele in crates ohne Sealed"]),
            ("fr", ["Combien dans crates avec Kind glass et Fee au plus 2",
                    "Total de Fee par Depot, du plus grand au plus petit, les 3 premiers",
                    "Crate avec la plus petite valeur de Fee", "Combien dans crates avec Sealed",
                    "Combien dans crates sans Sealed"]),
        ],
    )  # fmt: skip
    def test_are_in_the_language_of_the_question(self, code, labels):
        few = Filter("Kind", Op.IS, ("glass",)), Filter("Fee", Op.AT_MOST, (2,))
        counted = (Measure(Kind.COUNT),)
        plans = [
            TablePlan("t", filters=few, measures=counted),
            TablePlan(
                "t",
                group=(Key("Depot"),),
                measures=(Measure(Kind.SUM, "Fee"),),
                order=(Order("measure 1", True),),
                limit=3,
            ),
            TablePlan("t", columns=("Crate", "Fee"), order=(Order("Fee", False),), limit=1),
            *(
                TablePlan(
                    "t", (Filter("Sealed", Op.IS, (value,)),), measures=(Measure(Kind.COUNT),)
                )
                for value in (True, "no")
            ),
        ]

        assert [offer_words(plan, "crates", code) for plan in plans] == labels

    @pytest.mark.parametrize(("near", "labels"), [(9.0, ["Average Fee for each Depot"]), (3.0, [])])
    def test_a_word_that_means_a_column_offers_it_and_claims_nothing(
        self, application, near, labels
    ):
        def likeness(words, names):
            meant = {"duty": "fee", "warehouse": "depot"}
            return [[near if meant.get(word) == name else 0.0 for name in names] for word in words]

        answers = TableAnswers(application.table_answers.library, likeness=likeness)
        question = "What is the average duty by warehouse?"

        answer = answers.answer(
            application.store.create("ada"), question, Resolution(question, False, "unchanged")
        )

        offers = answer.offers if answer is not None else ()
        assert [each.label for each in offers] == labels
        assert answer is None or answer.result is None

    def test_name_no_more_than_three_readings(self, asked):
        assert len(asked("Which kind has the most crates by far?").offers) <= 3

    def test_an_offer_says_nothing_by_itself(self, asked):
        answer = asked("total fee by depot")

        assert answer.result is None
        assert answer.model != "tables"


class TestWordsThatAreAlmostThere:
    """Rows by their table's name, names of columns in part or written short: offered."""

    @pytest.fixture(scope="class")
    def offered(self, tmp_path_factory):
        made = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
        bikes = "rownames,mfr,model,seat_color,fuel_cap_l,total_track_laps\n" + "\n".join(
            f"{i},{('Alder', 'Birch', 'Birch')[i % 3]},Type {i},{('red', 'blue')[i % 2]},{i % 9}.5,"
            f"{100 + i * 37 % 50}"
            for i in range(1, 31)
        )
        list(made.ingestion.ingest([IncomingFile.from_bytes("fastbikes07.csv", bikes.encode())]))
        library = made.table_answers.library

        def offered(question):
            choices = library.understand(question, EVERYTHING)
            return [
                (in_words(c.plan), c.unused) for c in made.table_answers.offered(question, choices)
            ]

        yield offered
        made.stop()

    @pytest.mark.parametrize(
        ("question", "plan"),
        [
            ("How many fast bikes are by Birch?", "count of rows with mfr Birch"),
            ("How many fast bikes have red seats?", "count of rows with seat color red"),
            ("What is the average number of track laps?", "average total track laps"),
        ],
    )
    def test_are_used(self, offered, question, plan):
        assert (plan, ()) in offered(question)

    @pytest.mark.parametrize(
        ("part", "word", "is_short"),
        [
            ("mfr", "manufacturer", True),
            ("temp", "temperature", True),
            ("qty", "quantity", True),
            ("mfr", "member", False),
            ("tr", "true", False),
            ("wt", "want", True),
        ],
    )
    def test_a_word_is_written_short(self, part, word, is_short):
        assert shortens(part, word) is is_short

    def test_a_word_that_a_column_only_may_have_short_is_never_read_whole(self, shops):
        for question in ("How many countries are there?", "total contest by city"):
            with pytest.raises(UserError, match="No table answers this"):
                shops.ask(question, EVERYTHING)

    def test_a_word_of_one_letter_repeated_breaks_nothing(self, shops):
        with pytest.raises(UserError):
            shops.ask("What is the average eeeeeeee of Cost?", EVERYTHING)

    @pytest.fixture(scope="class")
    def shops(self, tmp_path_factory):
        made = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
        rows = "Shop,City,Count,Cost\n" + "\n".join(
            f"Shop {i},{('Bonn', 'Linz')[i % 2]},{i * 7 % 20},{i * 13 % 50}" for i in range(1, 31)
        )
        list(made.ingestion.ingest([IncomingFile.from_bytes("shops.csv", rows.encode())]))
        yield made.table_answers
        made.stop()
