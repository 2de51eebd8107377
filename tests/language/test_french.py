"""A third language is one file: what it brings to each reader of text, and takes from no other."""

import pytest

from rag.citations.comparison.parser import read
from rag.citations.statements import limits, states_something
from rag.language.figures import read_figures
from rag.language.names import Lexicon
from rag.language.sentences import split_sentences
from rag.language.words import LANGUAGES, content_words, language_of
from rag.library.answers import courtesy, library_question, other_language
from tests.library.test_remarks import source

FRENCH = next(each for each in LANGUAGES if each.code == "fr")


@pytest.mark.parametrize("of", ["words", "groups", "meanings", "patterns", "speech", "called"])
def test_every_language_has_every_class(of):
    held = [set(getattr(each, of)) - {"idle_in_questions"} for each in LANGUAGES]

    assert all(each == held[0] for each in held)


@pytest.mark.parametrize("of", ["manners", "forms"])
def test_every_language_is_asked_in_every_way(of):
    assert len({frozenset(getattr(each, of)) for each in LANGUAGES}) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Combien coûte le routeur Aero 5 ?", "fr"),
        ("La garantie dure deux ans à partir de l’achat.", "fr"),
        ("Font size and car insurance plus", "en"),
        ("Pour the water into the kettle.", "en"),
        ("Étude and Höra", "en"),
        ("Die Lieferung dauert drei Tage.", "de"),
    ],
)
def test_is_told_from_others(text, code):
    assert language_of(text).code == code


def test_stop_words_go_and_elisions_come_off():
    assert content_words("L’appareil se charge en deux heures avec l’adaptateur.") == (
        "appareil", "charg", "heur", "adapt",
    )  # fmt: skip
    # what is a stop word in French alone is a word elsewhere
    assert content_words("The car has a plus for the font.") == ("car", "plus", "font")


@pytest.mark.parametrize(
    ("text", "value", "unit", "comparator"),
    [
        ("Le prix est de 1\u202f500,50 euros.", 1500.5, "€", ""),
        ("Le prix est de 1\u2009500,50 euros.", 1500.5, "€", ""),
        ("Il faut au moins trois heures.", 3.0, "h", ">="),
        ("Il pèse moins de deux kilogrammes.", 2.0, "kg", "<"),
        ("Cela dure une heure et demie.", 1.5, "h", ""),
        ("La remise est de 15 pour cent.", 15.0, "%", ""),
        ("Le délai est de 30 jours ouvrables au plus.", 30.0, "business day", "<="),
        ("Il ouvre à 14h30.", 14.5, "", ""),
        ("Depuis le 1er janvier 2025.", 20250101.0, "", ""),
    ],
)
def test_figures_have_their_units_and_limits(text, value, unit, comparator):
    (figure,) = read_figures(text)

    assert (figure.value, figure.unit, figure.comparator) == (value, unit, comparator)


def test_a_range_is_one_figure():
    (figure,) = read_figures("Le délai est de 5 à 7 jours.")

    assert (figure.ends, figure.unit) == ((5.0, 7.0), "day")


@pytest.mark.parametrize(
    "text", ["It costs $15 an hour.", "A five cent coin", "in Sept.", "It charges in 2 h 30 min."]
)
def test_no_figure_of_another_language_is_read_otherwise(text):
    assert {each.unit for each in read_figures(text)} <= {"$", "cent", "h", "min"}


def test_sentences_end_behind_no_abbreviation():
    text = "Voir env. 20 pages, chap. 3. Le reste suit."

    assert len(split_sentences(text)) == 2


def test_a_denial_and_a_limit_are_seen():
    told = [read(f"Le routeur {is_} étanche.", Lexicon(()), FRENCH) for is_ in ("n’est pas", "est")]

    assert [any(term.denies for term in each.terms) for each in told] == [True, False]
    assert limits("Sauf si la batterie est vide.", cites=False)
    assert not states_something("Bonjour et merci.", cites=False)


@pytest.mark.parametrize(
    ("question", "kind", "subject"),
    [
        ("Quels documents y a-t-il ?", "contents", ""),
        ("Bonjour, que contient la bibliothèque ?", "contents", ""),
        ("Quels sont les derniers documents ajoutés ?", "newest", ""),
        ("Quels documents mentionnent Bluetooth ?", "mentions", "Bluetooth"),
        ("Où est mentionné Bluetooth ?", "mentions", "Bluetooth"),
        ("Quels documents parlent de la garantie ?", "topic", "la garantie"),
        ("Résume le manuel, s’il vous plaît", "summary", "le manuel"),
        ("De quoi parle le manuel ?", "about", "le manuel"),
        ("Quels fichiers n’ont pas pu être lus ?", "unread", ""),
    ],
)
def test_the_library_is_asked(question, kind, subject):
    asked = library_question(question)

    assert (asked.kind, asked.subject, asked.language) == (kind, subject, FRENCH)


def test_a_question_to_the_documents_is_none():
    assert library_question("Quels documents faut-il pour la demande ?") is None


@pytest.mark.parametrize(("text", "kind"), [("Bonjour", "greeting"), ("Merci !", "thanks")])
def test_what_asks_nothing_is_a_courtesy(text, kind):
    assert courtesy(text) == (kind, FRENCH)


def test_a_question_is_no_courtesy():
    assert courtesy("Et quand je pars ?") is None


def test_a_remark_is_made_in_the_language_of_the_question():
    found = source("The warranty of all the devices is two years from the day of their purchase.")

    said = other_language("Quelle est la garantie pour les appareils ?", [found])

    assert said.startswith("La question est en français, les passages trouvés sont en anglais.")
