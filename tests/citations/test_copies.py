"""What a statement in its source's own words is warned of; what is said in other words is open."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rag.citations.verdicts import check
from rag.errors import ModelUnavailable
from rag.records import Citation, Verdict
from rag.seams import Matrix
from tests.citations.test_check import AERO, SOURCES

DOCK = (
    "The Dock charges one telephone at once, with 5 W on the left side and 15 W on the right side. "
    "It stays cool up to 45 °C in normal use. Add 350 µl of cleaner once a year, at once. "
    "The shop is open Tuesday to Saturday from 10:00 to 18:00, on Thursdays until 20:00. "
    "The office answers from 9:00 to 16:00, on Mondays it is closed. "
    "The light is red while it charges and green when it is full. "
    "Cases are insured up to €20,000 if they were locked, otherwise up to €5,000. "
    "Rinsing must not take longer than five minutes. "
    "Only trained staff may open the lid. Colours fade, except black. "
    "Photography is allowed without flash. Goggles are allowed, snorkels are not. "
    "Smoking is forbidden in the hall and on the balcony. "
    "Equipment may make up no more than the share of the partner. "
    "Two boxes hold 250 g each; a third one holds 350 g. "
    "Touch the top to mute: the bulb turns violet; a second touch turns it orange. "
    "The Pad can lead 6 points; before, it was 4. "
    "The Pad Mini is protected to IP57 against water. The Pad Air is protected to IPX4: a washing "
    "machine does it harm, and so do salt, soap, bleach and hot steam. "
    "If the budget is not enough, ports are switched off, beginning with the highest number. "
    "On the Amp 50, set the slider to 0. On the Amp 50 BT, hold the button for 8 seconds."
)


def judged(said: str, passage: str = DOCK, **given: object) -> Citation:
    source = replace(AERO, document_title="Notes", heading_path=(), text="", passage=passage)
    return check(f"{said} [1].", {1: source}, **given).citations[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("The Dock charges with 15 W on the left side", "5 W"),
        ("The Dock charges with 5 W on the right side", "15 W"),
        ("Add 450 µl of cleaner once a year", "350 µl"),
        ("It stays cool up to 45 °F in normal use", "gives 45 °C"),
        ("Everybody may open the lid", "limits this"),
        ("Snorkels are allowed", "says"),
        ("Equipment may make up more than the share of the partner", "says"),
        ("The three boxes together hold 950 g", "gives"),
        ("The Pad can lead 4 points; before, it was 6", "gives 6"),
        ("On the Amp 50, hold the button for 8 seconds", "gives 8 seconds"),
    ],
)
def test_a_copy_with_one_thing_changed_is_contradicted_with_what_stands_there(
    said: str, told: str
) -> None:
    citation = judged(said)

    assert citation.verdict is Verdict.CONTRADICTED
    assert told in citation.reason


@pytest.mark.parametrize(
    "said",
    [
        "The Dock charges with 5 W on the left side",
        "On Thursdays the shop is open until 20:00",
        "On Fridays the shop is open from 10:00 to 18:00",
        "Cases that were not locked are insured up to €5,000",
        "Rinsing takes five minutes at most",
        "The bulb is violet when muted and orange after a second touch",
        "Before, the Pad could lead 4 points; now it leads 6",
        "The Pad Air takes IPX4 and the Pad Mini IP57",
        "The Amp 50 BT wants its button held for 8 seconds",
        "Only trained staff may open the lid",
        "The left pad gives the telephone less power than the right one",
        "Nobody gets more than twenty grand for a case",
        "You may take pictures as long as the flash stays off",
        "Bring your own goggles, but leave the snorkel at home",
        "Both boxes together hold 500 g",
        "Four years of cleaning take 1,400 µl",
    ],
)
def test_what_is_right_is_not_warned_of_in_whatever_words(said: str) -> None:
    assert not judged(said).verdict.is_warning


class Meanings:
    """An embedding model whose texts are alike, or are not."""

    name, dimensions, max_tokens = "meanings", 2, 256

    def __init__(self, *, are_alike: bool, is_away: bool = False) -> None:
        self.asked: list[str] = []
        self._second = [1.0, 0.0] if are_alike else [0.0, 1.0]
        self._is_away = is_away

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)

    def embed(self, texts: Sequence[str]) -> Matrix:
        if self._is_away:
            raise ModelUnavailable("away")
        first = [] if self.asked else [[1.0, 0.0]]
        self.asked += texts
        return np.array([*first, *[self._second] * (len(texts) - len(first))], dtype=np.float32)


OTHER_WORDS = "Mum or dad has to sign for a youngster"


def test_other_words_of_the_same_meaning_are_not_called_another_subject() -> None:
    assert judged(OTHER_WORDS, embedder=Meanings(are_alike=False)).verdict is Verdict.OFF_SUBJECT
    assert judged(OTHER_WORDS, embedder=Meanings(are_alike=True)).verdict is Verdict.OPEN


def test_some_of_the_words_with_another_meaning_are_called_another_subject() -> None:
    said = "The telephone sanitises purple hairdressers daily"
    assert judged(said).verdict is Verdict.OPEN
    assert judged(said, embedder=Meanings(are_alike=False)).verdict is Verdict.OFF_SUBJECT


def test_no_meaning_is_asked_for_where_the_words_are_there() -> None:
    embedder = Meanings(are_alike=False)

    assert (
        judged("The Dock charges one telephone at once", embedder=embedder).verdict.is_warning
        is False
    )
    assert embedder.asked == []


def test_nothing_is_called_another_subject_while_the_model_is_away() -> None:
    away = Meanings(are_alike=False, is_away=True)
    assert judged(OTHER_WORDS, embedder=away).verdict is Verdict.OPEN
    assert judged(OTHER_WORDS).verdict is Verdict.OPEN


FEES = (
    "| Medium | Renewals | Late fee per day |\n|---|---|---|\n"
    "| films | 1 | € 2.00 |\n| games | 1 | € 0.50 |\n\n"
    "A week of duty is paid with € 240, plus € 45 for each call between 22:00 and 6:00. "
    "Discount 22 % from 10 units, 27 % from 50 units of one product. "
    "The holes of the Bar 300 are 760 mm apart, those of the Bar 200 410 mm."
)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("A week with two calls comes to € 285", Verdict.OPEN),  # the two are not in it
        ("A film returned three days late costs € 6.00", Verdict.COMPUTED),
        ("A game returned four days late costs € 4.00", Verdict.CONTRADICTED),
        ("At a discount of 22 % you save € 66 of € 300", Verdict.COMPUTED),
        ("The holes of the Bar 300 are 350 mm further apart than the Bar 200's", Verdict.OPEN),
        ("A week of duty is paid with € 45, and a call with € 240", Verdict.CONTRADICTED),
    ],
)
def test_what_is_worked_out_uses_all_that_is_counted_and_nothing_else(
    said: str, verdict: Verdict
) -> None:
    assert judged(said, FEES).verdict is verdict


LOUDER = "The Vega 7 is louder than the Lyra 3."


@pytest.mark.parametrize(
    ("said", "source", "verdict"),
    [
        ("The Lyra 3 is not louder than the Vega 7", LOUDER, Verdict.OPEN),
        ("The Lyra 3 is not as loud as the Vega 7", LOUDER, Verdict.OPEN),
        ("The Vega 7 is not louder than the Lyra 3", LOUDER, Verdict.CONTRADICTED),
        (
            "Die Lyra ist nicht lauter als die Vega",
            "Die Vega ist lauter als die Lyra.",
            Verdict.OPEN,
        ),
        (
            "Die Vega ist nicht lauter als die Lyra",
            "Die Vega ist lauter als die Lyra.",
            Verdict.CONTRADICTED,
        ),
    ],
)
def test_what_is_denied_the_other_way_round_follows(
    said: str, source: str, verdict: Verdict
) -> None:
    assert judged(said, source).verdict is verdict


def test_a_word_of_the_title_is_no_denial() -> None:
    """`Notes` and `Not` have the stem `not`, which may not stand for `nicht`."""
    citation = judged("Die Pumpe Vega ist nicht sehr laut", "Die Pumpe Vega ist sehr laut.")

    assert citation.verdict is Verdict.CONTRADICTED


def test_a_refusal_is_no_denial_of_what_follows() -> None:
    passage = "The app works without an account as long as it is in the same network."

    citation = judged("No, as long as it is in the same network", passage)

    assert citation.verdict is Verdict.OPEN


TALL = (
    "The survey found 76.3 % of the tenants content. The fence is 1.82 m high. "
    "The set costs EUR 129.90. On Sunday 1,204 people came."
)


@pytest.mark.parametrize(
    ("said", "is_warned"),
    [
        ("The survey found 76 % of the tenants content", False),
        ("The fence is 1.8 m high", False),
        ("The survey found 67 % of the tenants content", True),
        ("The fence is 1.9 m high", True),
        ("The set costs EUR 130", True),  # another price
        ("On Sunday fewer than 1,200 people came", True),
        ("On Sunday more than 2,000 people came", True),
    ],
)
def test_a_rounded_figure_is_the_sources_own(said: str, is_warned: bool) -> None:
    assert judged(said, TALL).verdict.is_warning is is_warned


def test_each_number_of_a_group_says_for_itself() -> None:
    text = "The Tarn 2 costs EUR 149 [4][5]."

    price, bicycles = check(text, SOURCES, embedder=Meanings(are_alike=False)).citations

    assert (price.number, price.verdict) == (4, Verdict.SUPPORTED)
    assert (bicycles.number, bicycles.verdict) == (5, Verdict.OFF_SUBJECT)


HOUSE = (
    "Dogs travel free but must be kept on deck. Children under four travel free of charge. "
    "A return ticket costs twice the fare less 10 %. It is valid for a month. "
    "Cars must be at the quay 25 minutes before departure."
)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (
            "Children under four travel free of charge, and a return ticket costs twice the fare "
            "less 10 %",
            Verdict.SUPPORTED,
        ),
        (
            "According to the timetable, children under four travel free of charge",
            Verdict.SUPPORTED,
        ),
        (
            "The leaflet says that cars must be at the quay 25 minutes before departure",
            Verdict.SUPPORTED,
        ),
        # sentences in another order, a pronoun of another sentence, half of one
        ("A return ticket costs twice the fare less 10 %, and dogs travel free", Verdict.OPEN),
        ("Children under four travel free of charge, and it is valid for a month", Verdict.OPEN),
        ("Cars travel free but must be kept on deck", Verdict.CONTRADICTED),  # another of its words
    ],
)
def test_sentences_may_be_joined_and_reported_but_not_mixed(said: str, verdict: Verdict) -> None:
    assert judged(said, HOUSE).verdict is verdict
