"""Tables whose columns are not called what people ask for: understood, or said so."""

import pytest

from tests.applications import application_over

FILES = {
    "motorcars.csv": """Model,Min.Price,Price,Max.Price,AirBags,Doors,Built in
Nova,9.0,12.1,15.3,None,0,"Houston, Texas"
Orbit,8.0,14.5,30.0,Driver,4,"Houston, Texas"
Quark,11.0,11.9,12.5,Driver,2,"Reno, Nevada"
Zephyr,20.0,21.0,22.5,Driver,4,"Reno, Nevada"
""",
    "satellites.csv": """Payload,Launch Site,Customer,Date
Tellus,Kourou,ESA,2019-05-02
Marisat,Canaveral,NASA,2020-06-03
""",
    "wines.csv": """Wine,Vintage,Bottle EUR,Glass EUR
Rioja,2020,27.50,6.20
Barolo,2016,98.00,19.50
Malbec,2022,24.00,5.60
Barbera,2021,29.00,6.50
Barolo,2011,98.00,19.50
""",
    "school-clubs.csv": """Club,Day,Cost per term
Football,Monday,£42
Choir,Tuesday,free
Chess,Wednesday,£15
Judo,Thursday,£100
""",
    "piers.csv": """Pier,Income Q1,Income Q2,Income Q3
North,8200,15400,22750
South,6100,11200,14300
West,3700,6900,8800
""",
    "crossings.csv": """Crossing,Departs,Cars
Vest – Orrey,07:15,48
Orrey – Vest,08:30,72
Orrey – Vest,09:40,72
Vest – Orrey,18:00,48
""",
    "hoses.csv": """Hose,Weight g
Hose 30,160
Hose 60,290.5
""",
    "car-hire.csv": """Class,Example,Seats,Per day
Mini,Pico 3,4,€39
Van,Orion 9,9,€98
""",
    "programm.csv": """Nr;Kurs;Leitung;Beginn
H101;Aquarell;Lena Voss;18:00
H102;Ton;Lena Voss;19:00
K401;Brot;Jan Mehl;10:00
""",
}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("data"), FILES) as application:
        yield application


@pytest.fixture
def ask(application):
    session = application.store.create("me")

    def ask(question):
        *_, end = application.assistant.ask(session, question)
        return end.message

    return ask


def test_the_oldest_has_the_lowest_year_whatever_its_column_is_called(ask):
    oldest = ask("Which is the oldest wine?").content

    assert "Barolo** is the oldest" in oldest
    assert "| Barolo | 2011 |" in oldest
    assert "Malbec" in ask("Which is the newest wine?").content


def test_a_price_is_of_the_column_that_is_named_beside_it(ask):
    assert "€55.30" in ask("What is the average bottle price of the wines?").content
    assert "**3** rows" in ask("How many wines cost less than 30 euros a bottle?").content


def test_of_two_prices_both_are_offered_and_none_is_claimed(ask):
    answer = ask("What is the cheapest wine under 26 euro?").answer

    assert answer.result is None
    assert [("Bottle" in e.label, "Glass" in e.label) for e in answer.offers] == [
        (True, False),
        (False, True),
    ]


def test_amounts_that_are_texts_are_put_in_no_order(ask):
    assert ask("What is the most expensive club?").answer.result is None


def test_what_stands_in_a_compound_is_no_place_beside_a_row(ask):
    assert "Choir" in ask("Which after-school clubs are free?").content


def test_a_word_of_several_figures_is_not_taken_for_the_first(ask):
    total = ask("What is the total income of the North pier?")

    assert total.answer.result is None
    assert "22,750" in ask("What was the highest income in Q3?").content.replace("22750", "22,750")


def test_a_value_is_known_by_its_words_in_their_order(ask):
    there, back = (ask(f"How many crossings are there from {way}?").content for way in WAYS)

    assert "**2** rows where Crossing is Vest – Orrey" in there
    assert "**2** rows where Crossing is Orrey – Vest" in back


WAYS = ("Vest to Orrey", "Orrey to Vest")


def test_rows_that_nothing_names_are_shown_whole(ask):
    assert "| Orrey – Vest | 08:30 | 72 |" in ask("Which crossings go from Orrey to Vest?").content


def test_the_heaviest_is_named_with_its_weight(ask):
    assert "| Hose 60 | 290.5 |" in ask("What is the heaviest hose?").content


def test_rows_that_were_shown_are_not_narrowed_by_words_that_their_table_lacks(ask):
    ask("Which crossings go from Orrey to Vest?")

    assert "I do not know what “sunday” means there" in ask("Only those on Sunday").content


def test_the_cheapest_of_something_is_named_with_its_price(ask):
    assert "| Mini | €39 |" in ask("What is the cheapest car per day?").content


def test_what_points_at_one_thing_is_not_added_up_over_all(ask):
    ask("What is an Orion 9?")

    assert "Sum of Seats" not in ask("How many seats does it have?").content


def test_a_german_plural_names_the_column_of_its_singular(ask):
    assert "2 Zeilen mit Leitung = Lena Voss: [1]" in ask("Welche Kurse gibt Lena Voss?").content


def test_a_smallest_price_is_no_price_in_minutes(ask):
    assert "**12.1**" in ask("What does the Nova cost?").content


def test_of_several_prices_the_one_that_is_called_so_is_meant(ask):
    assert ask("Which motorcar is the cheapest?").content.startswith("**Quark** is the cheapest")


@pytest.mark.parametrize("without", ["no airbags", "no doors"])
def test_what_there_is_none_of_stands_there_as_none_or_as_nought(ask, without):
    assert "**1** row" in ask(f"How many motorcars have {without}?").content


def test_a_place_is_known_by_what_stands_before_its_comma(ask):
    assert "**2** rows" in ask("How many motorcars are built in Houston?").content


def test_rows_are_no_answer_to_when_and_how_much(ask):
    assert ask("When was the Tellus launch?").answer.result is None
    assert ask("How much is the Tellus launch?").answer.result is None
