"""Figures that follow from others: right ones are worked out again, wrong ones never are."""

import pytest

from tests.citations.test_against_the_source import verdict

PLANS = """| Plan | Monthly fee | Setup | Data | Contract |
|---|---|---|---|---|
| Basic | €12.50 | €20 | 5 GB | 12 months |
| Plus | €18 | €10 | 20 GB | 24 months |
| Max | €30 | free | 60 GB | 24 months |

The office opens at 8:30 and closes at 17:00. Lunch lasts 45 minutes. The course starts on 4 March
2025 and ends on 28 March 2025. A late fee of 15 % applies to invoices paid after 30 days. The
invoice was €240. Tickets cost €8 for adults and €5 for children under 12."""
BOATS = """| Boat | Seats | Half day | Full day | Deposit |
|---|---|---|---|---|
| Rowing boat | 4 | €25 | €40 | €50 |
| Canoe | 3 | €30 | €48 | €80 |
| Sailing dinghy | 5 | €60 | €95 | €200 |

Life jackets are free; a dry bag costs €3 per day. Loudspeakers have a warranty of 24 months,
amplifiers one of 24 months, too."""

RENT = """Die Kaltmiete beträgt 840 Euro im Monat, die Nebenkosten 190 Euro im Monat. Ein Stellplatz
kostet 60 Euro im Monat. Die Wohnung hat 70 m², der Keller 12 m². Ruhezeit ist von 22:00 bis 6:00
Uhr. Ein Sack Erde wiegt 6 kg und kostet 4,40 Euro. Ab zehn Stück gibt es 15 % Rabatt."""

COMPARED = """| Year | Visitors |
|---|---|
| 2021 | 12,400 |
| 2022 | 15,500 |

| Ferry | Adult |
|---|---|
| Mull | £12.40 |
| Coll | £18.90 |

The Aero 5 weighs 410 g and the Aero 5 Pro 620 g. Alpha costs €20, Beta costs €35 and Gamma €60."""

PUMP = "Of the 240 people asked, 180 were satisfied and 24 were not."


@pytest.mark.parametrize(
    ("source", "said", "right", "wrong"),
    [
        pytest.param(
            RENT, "Die Kaltmiete beträgt im Jahr {}", "10.080 Euro", ["5.880 Euro"], id="im-jahr"
        ),
        pytest.param(
            RENT, "Wohnung und Keller haben zusammen {}", "82 m²", ["92 m²"], id="zusammen"
        ),
        pytest.param(
            RENT,
            "Die Nebenkosten sind {} höher als der Stellplatz",
            "130 Euro",
            ["650 Euro", "780 Euro"],
            id="höher",
        ),
        pytest.param(PLANS, "Basic costs {} a year", "€150", ["€140", "€170"], id="a-year"),
        pytest.param(PLANS, "A year of Plus comes to {}", "€216", ["€210", "€120"], id="year-of"),
        pytest.param(
            PLANS, "Plus is {} more a month than Basic", "€5.50", ["€6.50", "€12"], id="difference"
        ),
        pytest.param(
            PLANS, "Over its 24 months, Max costs {}", "€720", ["€700", "€432"], id="months-said"
        ),
        pytest.param(PLANS, "Max has {} more than Plus", "40 GB", ["45 GB", "55 GB"], id="cells"),
        pytest.param(
            PLANS,
            "Together the three plans cost {} a month",
            "€60.50",
            ["€62", "€54", "€66.50"],
            id="a-column",
        ),
        pytest.param(
            PLANS, "With the late fee the invoice is {}", "€276", ["€255", "€248"], id="and-a-share"
        ),
        pytest.param(PLANS, "Three adults pay {}", "€24", ["€26", "€15"], id="a-count"),
        pytest.param(
            BOATS, "Two canoes for a full day cost {}", "€96", ["€80", "€60"], id="of-one-row"
        ),
        pytest.param(
            BOATS, "The deposit for two rowing boats is {}", "€100", ["€160", "€80"], id="deposit"
        ),
        pytest.param(
            PUMP, "{} of the people asked were satisfied", "75%", ["80%", "10%"], id="a-share-of"
        ),
        pytest.param(
            PUMP, "Three out of {} people asked were satisfied", "four", ["five"], id="out-of"
        ),
        pytest.param(
            BOATS, "Three dry bags for a day cost {}", "€9", ["€12", "€15"], id="three-threes"
        ),
    ],
)
def test_what_follows_is_worked_out_and_nothing_else(
    source: str, said: str, right: str, wrong: list[str]
) -> None:
    assert verdict(source, said.format(right)) == "computed"
    assert {verdict(source, said.format(each)) for each in wrong} <= {"open", "contradicted"}


@pytest.mark.parametrize(
    "said",
    [
        "Full day in the dinghy costs €55 more than half a day",  # that of the rowing boat
        "A full day in a rowing boat costs €23 more than a half day",
        "The deposit of the dinghy is €150 more than the canoe's",
        "A canoe costs €55 more for a full day than a rowing boat",
        "Loudspeakers and amplifiers have a warranty of 48 months",
        "Both warranties are 48 months",
    ],
)
def test_no_difference_is_taken_from_what_is_not_compared(said: str) -> None:
    assert verdict(BOATS, said) != "computed"


@pytest.mark.parametrize(
    ("said", "reversed_"),
    [
        (
            "The Aero 5 Pro is 210 g heavier than the Aero 5",
            "The Aero 5 is 210 g heavier than the Aero 5 Pro",
        ),
        (
            "The Aero 5 is 210 g lighter than the Aero 5 Pro",
            "The Aero 5 Pro is 210 g lighter than the Aero 5",
        ),
        (
            "The ferry to Coll is £6.50 more expensive than the ferry to Mull",
            "The ferry to Mull is £6.50 more expensive than the ferry to Coll",
        ),
        (
            "In 2022 there were 3,100 more visitors than in 2021",
            "In 2021 there were 3,100 more visitors than in 2022",
        ),
        (
            "In 2021 there were 3,100 fewer visitors than in 2022",
            "In 2022 there were 3,100 fewer visitors than in 2021",
        ),
        ("Beta costs €15 more than Alpha", "Alpha costs €15 more than Beta"),
    ],
)
def test_a_difference_is_worked_out_in_its_own_direction(said: str, reversed_: str) -> None:
    assert verdict(COMPARED, said) == "computed"
    assert verdict(COMPARED, reversed_) != "computed"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Of 10 samples 20 % were bad; they come from the outer layer.", "The other two layers"),
        ("Deaths fell by 3 % in 2009–2014.", "Deaths fell between 2010 and 2014 by 2,008 %"),
    ],
)
def test_no_count_is_a_share_and_no_span_a_term(source: str, said: str) -> None:
    assert verdict(source, said) != "computed"
