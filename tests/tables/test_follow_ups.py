"""Follow-ups over other schemas than sales: what each makes of the plan, in its words."""

import pytest

from rag.tables.running.result import result_from
from tests.applications import application_over

ROOMS = ("Attic", "Lab", "Cellar")
FILES = {
    "bookings.csv": "Guest,Hotel,Room type,Check-in,Nights,Price,Cancelled\n"
    + "".join(
        f"Guest {i},{('Astoria', 'Bellevue', 'Central')[i % 3]},{('Single', 'Suite')[i % 2]},"
        f"{2024 + i % 2}-{i % 12 + 1:02}-1{i % 9},{i % 7 + 1},{60 + 7 * i}.5,"
        f"{('yes', 'no')[i % 4 > 0]}\n"
        for i in range(120)
    ),
    "sensors.csv": "Time,Sensor,Room,Temperature (°C),Humidity (%)\n"
    + "".join(
        f"2025-{i % 6 + 1:02}-{i % 28 + 1:02} 12:{i % 60:02},T{i % 4},"
        f"{ROOMS[i % 3]},{15 + i % 90 / 10},{30 + i % 40}\n"
        for i in range(200)
    ),
    "handbook.md": "# Handbook\n\nEverybody has 28 days of leave.\n",
}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("data"), FILES) as application:
        yield application


@pytest.fixture
def told(application):
    session = application.store.create("ada")

    def told(question):
        *_, end = application.assistant.ask(session, question)
        number = end.message.answer.result
        if number:
            return result_from(session.result(number)).words
        return f"declined: {end.message.content}" if end.message.answer.model == "tables" else None

    return told


CANCELLED = "Cancelled = yes, number of rows"
NIGHTS = "sum of Nights by Hotel"
WARM = "average of Temperature (°C)"
CONVERSATIONS = [
    [
        ("how many bookings were cancelled?", CANCELLED),
        ("by hotel", f"{CANCELLED} by Hotel"),
        ("and not cancelled?", "Cancelled = no, number of rows by Hotel"),
        ("which one has the most?", "Cancelled = no, number of rows by Hotel, highest 1"),
        ("total price", "Cancelled = no, sum of Price by Hotel, highest 1"),
    ],
    [
        ("total nights by hotel", NIGHTS),
        ("only suites", f"Room type = Suite, {NIGHTS}"),
        ("singles as well", f"Room type = Suite or Single, {NIGHTS}"),
        ("without Central", f"Room type = Suite or Single, Hotel is not Central, {NIGHTS}"),
        ("undo", f"Room type = Suite or Single, {NIGHTS}"),
        ("undo", f"Room type = Suite, {NIGHTS}"),
        ("average instead", "Room type = Suite, average of Nights by Hotel"),
        ("drop the hotel", "Room type = Suite, average of Nights"),
    ],
    [
        ("total nights in 2024", "year of Check-in = 2024, sum of Nights"),
        ("compare with 2025",
         "year of Check-in = 2024 or 2025, sum of Nights by year of Check-in"),
        ("only the Astoria",
         "year of Check-in = 2024 or 2025, Hotel = Astoria, sum of Nights by year of Check-in"),
    ],
    [
        ("total nights in 2024", "year of Check-in = 2024, sum of Nights"),
        ("as a share", "year of Check-in = 2024, sum of Nights and share of Nights"),
        ("and the year after?", "year of Check-in = 2025, sum of Nights and share of Nights"),
    ],
    [
        ("how many bookings have more than 5 nights?", "Nights above 5, number of rows"),
        ("how many of them were cancelled?", f"Nights above 5, {CANCELLED}"),
    ],
    [
        ("how many bookings in the Astoria?", "Hotel = Astoria, number of rows"),
        ("how many are cancelled?", f"Hotel = Astoria, {CANCELLED}"),
    ],
    [
        ("average temperature by room", f"{WARM} by Room"),
        ("max instead", "max of Temperature (°C) by Room"),
        ("and humidity?", "max of Humidity (%) by Room"),
        ("between March and May",
         "Time at least 2025-03-01, Time below 2025-06-01, max of Humidity (%) by Room"),
        ("in June", "month of Time = June, max of Humidity (%) by Room"),
    ],
    [
        ("average temperature by room", f"{WARM} by Room"),
        ("the highest humidity in the lab",
         "Room = Lab, Sensor, Humidity (%), highest 1 by Humidity (%)"),
    ],
    [
        ("average temperature in the lab", f"Room = Lab, {WARM}"),
        ("and the attic?", f"Room = Attic, {WARM}"),
        ("und im März?", f"Room = Attic, month of Time = March, {WARM}"),
        ("rückgängig", f"Room = Attic, {WARM}"),
    ],
]  # fmt: skip


@pytest.mark.parametrize("turns", CONVERSATIONS, ids=lambda turns: turns[0][0])
def test_a_follow_up_changes_the_plan(told, turns):
    assert [(question, told(question)) for question, _ in turns] == turns


@pytest.mark.parametrize("question", ["only blue ones", "by salesperson", "only minibar"])
def test_words_that_it_does_not_know_change_nothing(told, question):
    told("total nights by hotel")

    assert told(question) is None


def test_the_largest_row_tells_more_of_itself(told):
    told("which sensor had the highest temperature in the attic?")

    assert told("when was that?").startswith("Room = Attic, Time, ")
