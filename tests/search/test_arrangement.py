"""What holds under another condition stands beside what was found, under its heading."""

import time
from dataclasses import replace

import pytest

from rag.records import EVERYTHING
from rag.search.passages import arranged, is_contents, with_steps
from tests.applications import application_over
from tests.made import made_chunk, made_hit

PAIRS = [  # section, both conditions with their words, question
    ("Choking", "Conscious patient", "Give five back blows, then let the patient drink water.",
     "Unconscious patient", "Open the airway. The patient must not drink water at all.",
     "May a choking patient drink water?"),
    ("Fever dose", "Adults", "Take two fever tablets every six hours.",
     "Infants", "No fever tablets; use half a suppository every eight hours.",
     "How many fever tablets every how many hours?"),
    ("Backup", "Version 4", "The backup runs from the menu Tools and stops the server.",
     "Version 5", "The backup runs by itself at night and the server goes on.",
     "How does the backup of the server run?"),
    ("Filter change", "Model A", "Turn the filter cover left and pull out the filter.",
     "Model B", "Push the filter cover down; the filter drops into your hand.",
     "How do I take out the filter?"),
    ("Returns", "With a receipt", "Returned goods are refunded in cash within 30 days.",
     "Without a receipt", "Returned goods are exchanged for a voucher within 14 days.",
     "Within how many days are returned goods refunded?"),
    ("Tyre pressure", "Summer", "Set the tyre pressure to 2.4 bar on cold tyres.",
     "Winter", "Set the tyre pressure to 2.6 bar on cold tyres.",
     "What tyre pressure on cold tyres?"),
    ("Entry", "Employees", "At the gate show the badge; the gate opens without a code.",
     "Visitors", "At the gate ring the bell; the gate opens for escorted guests.",
     "How does the gate open?"),
    ("Install", "Linux", "Install the package with the script and restart the service.",
     "Windows", "Install the package with the wizard and restart the computer.",
     "How do I install the package?"),
    ("Heizung", "Bei Frost", "Die Heizung bleibt nachts auf Stufe zwei an.",
     "Ohne Frost", "Die Heizung wird nachts ganz abgeschaltet.",
     "Was geschieht nachts mit der Heizung?"),
    ("Congé", "Temps plein", "Le congé annuel est de trente jours ouvrables.",
     "Temps partiel", "Le congé annuel est de quinze jours ouvrables.",
     "Combien de jours de congé annuel ?"),
    ("Charging", "Battery is full", "Unplug the charger; the charger light is green.",
     "Battery is not full", "Leave the charger in; the charger light is red.",
     "What colour is the charger light?"),
    ("Evacuation", "By day", "Leave by the main stairs and meet at the gate.",
     "By night", "Leave by the fire stairs and meet at the harbour.",
     "By which stairs do we leave, and where do we meet?"),
]  # fmt: skip
FILLER = "".join(
    f"## Note {number}\n\nThe committee met and wrote down that matter {number} is closed.\n\n"
    for number in range(8)
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    files = {
        f"{section}.md": f"# {section} guide\n\n{FILLER}## {section}\n\n### {one}\n\n{first}\n\n"
        f"### {two}\n\n{second}\n"
        for section, one, first, two, second, _ in PAIRS
    }
    with application_over(tmp_path_factory.mktemp("library"), files) as application:
        yield application


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[1]}, {pair[3]}")
def test_both_conditions_are_shown_together_under_their_headings(library, pair):
    section, one, _, two, _, question = pair

    hits = library.retriever.search(question, EVERYTHING)
    paths = [(hit.chunk.document_name, hit.chunk.heading_path) for hit in hits[:3]]
    places = [paths.index((f"{section}.md", (section, each))) for each in (one, two)]

    assert abs(places[0] - places[1]) == 1


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[1]}, {pair[3]}")
def test_the_other_condition_is_brought_up_from_below_others(pair):
    section, one, first, two, second, _ = pair
    between = [
        made_chunk(f"x{n}", f"Matter {n}.", document_id=f"d{n}", section_index=0) for n in range(4)
    ]
    chunks = [
        made_chunk("one", first, heading_path=(section, one), section_index=0),
        *between,
        made_chunk("two", second, heading_path=(section, two), section_index=1),
    ]
    hits = [replace(made_hit(chunk), score=3 - place / 3) for place, chunk in enumerate(chunks)]

    assert [hit.chunk.id for hit in arranged(hits)[:2]] == ["one", "two"]


def test_a_fourth_passage_of_a_file_gives_way_to_one_that_matches_as_well():
    own = [made_chunk(f"a{n}", f"Matter {n}.", section_index=n) for n in range(6)]
    other = made_chunk("b", "Matter b.", document_id="other", section_index=0)
    hits = [
        replace(made_hit(chunk), score=3 - place / 20) for place, chunk in enumerate([*own, other])
    ]

    assert [hit.chunk.id for hit in arranged(hits)[:4]] == ["a0", "a1", "a2", "b"]


def test_sections_that_speak_of_something_else_are_not_brought_together(tmp_path):
    files = {
        "tv.md": "# TV\n\n## Settings\n\n### Sound\n\nThe volume is set by the wheel.\n\n"
        "### Picture\n\nBrightness has ten steps.\n",
        "radio.md": "# Radio\n\nThe volume of the radio is set by the knob.\n",
    }
    with application_over(tmp_path, files) as application:
        hits = application.retriever.search("How is the volume set?", EVERYTHING)

    assert {hit.chunk.document_name for hit in hits[:2]} == {"tv.md", "radio.md"}


def test_one_file_does_not_fill_the_list_where_others_match_as_well(tmp_path):
    many = "".join(
        f"## Room {n}\n\nRoom {n} is cleaned on Mondays by team {n}.\n\n" for n in range(9)
    )
    files = {"rooms.md": f"# Rooms\n\n{many}"} | {
        f"hall {n}.md": f"# Hall {n}\n\nHall {n} is cleaned on Mondays by team {n}.\n"
        for n in range(3)
    }
    with application_over(tmp_path, files) as application:
        hits = application.retriever.search("What is cleaned on Mondays?", EVERYTHING, limit=6)

    assert len({hit.chunk.document_name for hit in hits}) > 1


def test_a_procedure_is_shown_whole(tmp_path):
    steps = "\n".join(
        f"{n}. Turn valve {n} to the left and wait for the click." for n in range(1, 16)
    )
    files = {"valves.md": f"# Valves\n\nSome words before.\n\nTo drain the plant:\n\n{steps}\n"}
    with application_over(tmp_path, files) as application:
        [hit, *_] = application.retriever.search("How do I drain the plant?", EVERYTHING)

    assert "To drain the plant:" in hit.passage
    assert all(f"valve {n} " in hit.passage for n in range(1, 16))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Setup ....... 3\nUse ......... 7\nCare ........ 12\nIndex ....... 40", True),
        ("Setup 3\nUse 7\nCare 12\nIndex 40\nGlossary 44", True),
        ("Red 3\nGreen 2\nBlue 12\nBlack 4", False),
        ("Set it up in 3 steps.\nUse it.\nCare for it.\nSee page 12", False),
    ],
)
def test_a_contents_page_is_told_by_its_form(text, expected):
    assert is_contents(text) is expected


@pytest.mark.parametrize("part", [" ", ". ", ".", "_", "\t", "1 "])
def test_a_long_line_is_told_at_once(part):
    began = time.thread_time()
    is_contents("a" + part * 50_000 + "x")

    assert time.thread_time() - began < 0.5


def test_a_contents_page_stands_behind_what_answers(tmp_path):
    files = {
        "a.txt": "Drain the boiler ..... 3\nFill the boiler ..... 7\nClean the boiler ..... 9\n"
        "Sell the boiler ..... 12\n",
        "b.txt": "To clean it, wipe the outside of the kettle with vinegar.\n",
    }
    with application_over(tmp_path, files) as application:
        hits = application.retriever.search("How do I clean the boiler?", EVERYTHING)

    assert [hit.chunk.document_name for hit in hits] == ["b.txt", "a.txt"]


COUNTED = {
    "English": ("Step {}", ["Open the lid.", "Fill in water.", "Close the lid.", "Press the key."]),
    "German": ("Schritt {}: Pumpe", ["Deckel öffnen.", "Wasser einfüllen.", "Deckel schließen."]),
    "French": ("Étape n° {}", ["Ouvrez.", "Remplissez le bac.", "Fermez."]),
    "Russian": ("Шаг {}", ["Откройте крышку.", "Налейте воду.", "Закройте крышку."]),
    "Japanese": ("手順{}", ["蓋を開けます。", "水を入れます。", "蓋を閉めます。"]),
}


def steps_of(heading, texts, start=1):
    return [
        made_chunk(f"s{n}", text, heading_path=("Guide", heading.format(n)), section_index=n)
        for n, text in enumerate(texts, start=start)
    ]


@pytest.mark.parametrize("language", COUNTED)
def test_steps_that_are_sections_of_their_own_stand_together_in_order(language):
    steps = steps_of(*COUNTED[language])
    other = made_hit(made_chunk("other", "Of something else.", document_id="d2"))
    hits = [other, made_hit(steps[1])]

    shown = with_steps(hits, hits[1], steps)

    assert [hit.chunk.id for hit in shown] == ["other", *(chunk.id for chunk in steps)]


@pytest.mark.parametrize(
    ("near", "why"),
    [
        (steps_of("Step {}", ["Word " * 200, "Word " * 200]), "together longer than a passage"),
        (steps_of("Chapter", ["One.", "Two."]), "nothing counts"),
        (steps_of("{}. Warranty", ["One.", "Two."]), "sections of any kind"),
        (steps_of("Since 20{}0", ["One.", "Two."]), "years"),
        ([*steps_of("Step {}", ["One."]), *steps_of("Step {}", ["Three."], start=3)], "a gap"),
        ([*steps_of("Step {}", ["One."]), *steps_of("Room {}", ["Two."], start=2)], "other words"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_does_not_count_on_is_no_step(near, why):
    hits = [made_hit(near[0])]

    assert with_steps(hits, hits[0], near) == hits


def test_a_step_of_a_document_that_was_read_anew_stands_alone():
    hits = [made_hit(steps_of("Step {}", ["One.", "Two."])[0])]

    assert with_steps(hits, hits[0], []) == hits


def test_of_many_steps_those_around_the_one_that_was_found_are_shown():
    steps = steps_of("Step {}", [f"Press key {n}." for n in range(12)])
    hits = [made_hit(steps[6])]

    shown = [hit.chunk.id for hit in with_steps(hits, hits[0], steps)]

    assert shown == [f"s{n}" for n in range(5, 10)]


def test_a_search_shows_a_procedure_whose_steps_have_headings(tmp_path):
    texts = ("Open the lid.", "Descale the boiler with citric acid.", "Rinse it.", "Close it.")
    steps = "".join(f"### Step {n}\n\n{text}\n\n" for n, text in enumerate(texts, start=1))
    files = {"machine.md": f"# Machine\n\n{FILLER}## Care\n\n{steps}"}
    with application_over(tmp_path, files) as application:
        hits = application.retriever.search("citric acid in the boiler", EVERYTHING)

    assert [hit.passage for hit in hits[:4]] == list(texts)
