"""What is warned of as against its source, beside ordinary sentences that are not."""

from dataclasses import replace

import pytest

from rag.citations.verdicts import check
from rag.records import Verdict
from tests.citations.test_check import AERO

LEASE = (
    "The tenant may not sublet the flat without the written consent of the landlord. "
    "Smoking is forbidden inside the flat and on the balcony. "
    "The landlord may raise the rent once a year, by no more than the rise of the price index. "
    "Music may be played for up to two hours a day. "
    "Deductions may be made for damage and unpaid rent, but not for fair wear and tear. "
    "Opening hours of the office: weekdays 9 am to 6 pm, weekends 10 am to 4 pm."
)
LEAFLET = (
    "Do not store above 25 °C. Do not charge the device while it is wet. "
    "Women in the treated group had a 25 % lower risk of a relapse. "
    "The symptom generally only appears at high doses. "
    "Do not take the average of a ratio, as that is not statistically valid. "
    "Europe is unlikely to return to the old state of affairs. "
    "The meeting takes place in October 2024."
)
HEIM = (
    "Bei Frost ist der Betrieb verboten. Das Kabel darf höchstens 20 m lang sein. "
    "Reparaturen am Netzkabel darf nur der Kundendienst ausführen. "
    "Nach dem Einschalten bleiben noch 30 Sekunden."
)
FARES = (
    "| Ticket | Adult | Child (6-15) |\n|---|---|---|\n| Single | €2.40 | €1.20 |\n"
    "| Day ticket | €6.50 | €3.00 |\n| Week ticket | €22.00 | €11.00 |\n\n"
    "Bicycles are not carried between 07:00 and 09:00."
)
PUMPS = (
    "| | HD 140 | HD 180 |\n|---|---|---|\n| Fördermenge | 420 l/h | 510 l/h |\n"
    "| Schlauchlänge | 8 m | 12 m |\n| Gewicht | 14,2 kg | 19,6 kg |"
)
POOL = (
    "The diving board is open only while a lifeguard is present. "
    "Jewellery is covered up to €20,000 if it was kept in a safe, otherwise up to €5,000. "
    "Keep it between 5 and 25 °C, apart from acids. Only 2.4 GHz networks are supported. "
    "The battery is full after 4.5 hours; 80 percent is reached after 2.5 hours. "
    "Do not charge it below 0 °C. The camera works between -20 and 45 °C. "
    "The sauna is open daily from 16:00 to 21:30. "
    "Payment is made in two parts: 80 percent at the start, the rest after the report."
)
PENS = (
    "| Item | Pack | Price | Delivery |\n|---|---|---|---|\n"
    "| Gel pen blue | 12 | £8.40 | 1 day |\n| Gel pen red | 12 | £8.40 | 5 days |\n"
    "| Ink cartridges Corvo | 6 | £3.60 | 3 days |"
)
LEAVE = (
    "Everybody has 28 days of holiday, and 2 more from the tenth year on. "
    "Up to 5 days may be carried over until 31 March. "
    "Working from another country is possible for 20 days a year within the European Union."
)

RELEASE = (
    "Version 4.2 introduced encrypted backups; earlier ones store them as plain text. "
    "The old import dialog was removed in 4.2. Of the 240 people asked, 180 were satisfied. "
    "Remote work is possible on up to two days a week, except during the first three months."
)


def verdict(passage: str, said: str) -> Verdict:
    source = replace(AERO, document_title="Notes", heading_path=(), text="", passage=passage)
    return check(f"{said} [1].", {1: source}).citations[0].verdict


@pytest.mark.parametrize(
    ("passage", "said"),
    [
        pytest.param(
            LEASE,
            "The landlord may raise the rent by more than the rise of the price index",
            id="more-for-no-more",
        ),
        pytest.param(LEAFLET, "Store it above 25 °C", id="one-word-and-a-figure"),
        pytest.param(
            LEAFLET, "Women in the treated group had a 25 % higher risk of a relapse", id="higher"
        ),
        pytest.param(LEAFLET, "It generally only appears at low doses", id="low-for-high"),
        pytest.param(HEIM, "Bei Frost ist der Betrieb erlaubt", id="german-opposite"),
        pytest.param(HEIM, "Reparaturen am Netzkabel darf jeder ausführen", id="by-everybody"),
        pytest.param(LEAVE, "You may work from any country of the world", id="anywhere"),
        pytest.param(FARES, "A week ticket costs €6.50 for adults", id="row-above"),
        pytest.param(PUMPS, "Der HD 140 hat einen Schlauch von 12 m", id="other-column"),
        pytest.param(
            PUMPS, "Der HD 140 fördert 510 l/h, der HD 180 nur 420 l/h", id="values-of-two-swapped"
        ),
    ],
)
def test_warns_of_what_the_source_says_otherwise(passage: str, said: str) -> None:
    assert verdict(passage, said) is Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("passage", "said"),
    [
        pytest.param(passage, said, id=said[:40])
        for passage, those in (
            (
                LEASE,
                (
                    "Subletting requires the landlord's consent in writing",
                    "You can't sublet the flat unless the landlord agrees in writing",
                    "Smoking is not allowed in the flat or on the balcony",
                    "A yearly increase is possible, up to the rise of the price index",
                    "The rent can't go up by more than the price index",
                    "Normal wear and tear can't be deducted, whereas damage and unpaid rent can",
                    "You can make music, but for no longer than two hours daily",
                    "On weekends the opening hours are 10 am to 4 pm",
                    "Everyone may play music for up to two hours a day",
                ),
            ),
            (
                LEAFLET,
                (
                    "Store it at no more than 25 °C",
                    "It must not be stored above 25 °C",
                    "Store it below 25 °C",
                    "It can be stored at up to 25 °C",
                    "Don't charge it while it is still wet, or before it is dry",
                    "The treated women's risk of a relapse was lower by 25 %",
                    "At low doses the symptom generally does not appear",
                    "Averaging a ratio is statistically wrong and should not be done",
                    "Europe might not return to the old state of affairs",
                ),
            ),
            (
                HEIM,
                (
                    "Bei Frost dürfen Sie das Gerät nicht betreiben",
                    "Der Betrieb ist bei Frost nicht erlaubt",
                    "Ein Kabel ist bis zu einer Länge von 20 m zulässig",
                    "Ein defektes Netzkabel muss der Kundendienst reparieren",
                    "Nach dem Einschalten haben Sie noch 30 Sekunden",
                ),
            ),
            (
                FARES,
                (
                    "A day ticket costs €6.50 for adults and €3.00 for children",
                    "Children pay €1.20 for a single, adults €2.40",
                    "Unlike the single at €2.40, the day ticket costs adults €6.50",
                    "A child's week ticket is €11.00",
                    "A week ticket for one adult and one child comes to €33 in total",
                    "Two adult day tickets cost €13 altogether",
                    "You can't take a bicycle during the morning peak, between 7 and 9",
                    "To be there by 08:15, leave your bicycle at home",
                ),
            ),
            (
                PUMPS,
                (
                    "Der HD 180 fördert 510 l/h, der HD 140 nur 420 l/h",
                    "Der HD 140 hat einen Schlauch von 8 m",
                    "Mit 14,2 kg ist der HD 140 leichter als der HD 180 mit 19,6 kg",
                    "Der Schlauch des HD 180 ist 4 m länger als der des HD 140",
                    "Der Schlauch ist 8 m oder 12 m lang",
                ),
            ),
            (
                LEAVE,
                (
                    "All employees get 28 days of holiday",
                    "That means long-serving colleagues have 30 days in total",
                    "Everyone may carry over up to 5 days until 31 March",
                    "Anybody may work from abroad, but only within the European Union",
                    "You can take any five days into the next year until 31 March",
                    "Any days that are left may be carried over until 31 March, at most 5",
                ),
            ),
            (
                POOL,
                (
                    "Without a lifeguard on duty, the diving board stays closed",
                    "Jewellery that was not in a safe is covered up to €5,000",
                    "It is not to be kept together with acids",
                    "After two and a half hours of charging it is at 80 %",
                    "It won't connect to a 5 GHz network",
                    "The sauna closes at half past nine in the evening",
                    "The remaining 20 % are paid after the report",
                ),
            ),
            (
                PENS,
                (
                    "Both gel pens cost £8.40 a dozen",
                    "A pack of six Corvo cartridges is £3.60",
                ),
            ),
            (PUMPS, ("Anders als der HD 140 wiegt der HD 180 19,6 kg",)),
            (
                RELEASE,
                (
                    "Before version 4.2, backups were not encrypted",
                    "There is no import dialog any more in 4.2",
                    "60 of those asked were not satisfied",
                ),
            ),
        )
        for said in those
    ],
)
def test_does_not_warn_of_the_same_in_other_words(passage: str, said: str) -> None:
    assert not verdict(passage, said).is_warning


def test_a_reason_names_the_month_that_the_source_names() -> None:
    source = replace(AERO, text="", passage=LEAFLET)

    told = check("The meeting takes place in November 2024 [1].", {1: source}).citations[0]

    assert told.verdict is Verdict.CONTRADICTED
    assert "October 2024" in told.reason


def test_a_statement_of_nothing_but_denials_is_read_at_once():
    assert (
        verdict(LEASE, "not " * 30_000) is not Verdict.SUPPORTED
    )  # many seconds, if read by pairs


WEIGHED = "The Aero 5 weighs 410 g. The Aero 5 Pro weighs 620 g."
PRICED = f"{WEIGHED} The Aero 5 costs €120; members get 10 % off."


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        pytest.param("Members pay €108 for the Aero 5", "computed", id="discount"),
        pytest.param("Members pay €110 for the Aero 5", "contradicted", id="wrong-discount"),
    ],
)
def test_a_share_of_an_amount_is_worked_out_again(said: str, wanted: str) -> None:
    assert verdict(PRICED, said) == wanted


def test_no_wrong_percentage_is_taken_for_computed() -> None:
    heavier, lighter = "The Aero 5 Pro is {} % heavier", "The Aero 5 is {} % lighter than the Pro"

    verdicts = {verdict(PRICED, heavier.format(each)) for each in (5, 21, 34, 49, 66, 151)}
    verdicts |= {verdict(PRICED, lighter.format(each)) for each in (5, 21, 51, 49, 66, 151)}

    assert verdicts <= {"open", "contradicted"}
