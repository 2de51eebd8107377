"""An embedding weighs nothing in a language that its model does not know (…, 6): measured."""

from dataclasses import astuple

import numpy as np

from rag import HistoryTrimmer
from rag.memory.embedding import SupportedLanguages
from rag.memory.history import all_phrases

ENGLISH = [*astuple(all_phrases()["en"])]
PLACES = {text: place for p in all_phrases().values() for place, text in enumerate(astuple(p))}


class Model:
    """Puts phrases of the languages that it knows beside the English ones."""

    def __init__(self, *known):
        self.calls = 0
        self._known = {text for code in ("en", *known) for text in astuple(all_phrases()[code])}

    def __call__(self, texts):
        self.calls += 1
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text):
        row = np.zeros(len(ENGLISH) + 1, np.float32)
        row[PLACES[text] if text in self._known else len(ENGLISH)] = 1.0
        return row


def test_are_those_whose_phrases_stand_beside_the_english_ones():
    languages = SupportedLanguages(Model("de", "ja"))

    known = {code for code, phrases in all_phrases().items() if phrases in languages}

    assert known == {"en", "de", "ja"}


def test_are_measured_once_each_and_english_never():
    model = Model()
    languages = SupportedLanguages(model)
    assert all_phrases()["en"] in languages
    assert model.calls == 0

    assert all_phrases()["de"] not in languages
    before = model.calls
    assert all_phrases()["de"] not in languages
    assert model.calls == before == 2


class Misleading(Model):
    """Finds every question near to what is said of a heron."""

    def _vector(self, text):
        if text in PLACES:
            return super()._vector(text)
        row = np.zeros(len(ENGLISH) + 1, np.float32)
        row[0 if "Reiher" in text or text.endswith("?") else 1] = 1.0
        return row


QUESTION = "Wie lange ist die Frist für Tulpen?"
FLOWERS = ("Rosen", "Nelken", "Lilien", "Astern", "Tulpen", "Primeln", "Dahlien", "Disteln")


def german_talk():
    for number in range(60):
        flower = FLOWERS[number % len(FLOWERS)] if number < len(FLOWERS) else f"Beet {number}"
        heron = "Der Reiher steht am Teich und wartet." if number % 3 else ""
        yield {"role": "user", "content": f"Ich möchte wissen, was über {flower} gilt. {heron}"}
        yield {"role": "assistant", "content": f"Für {flower} gilt eine Frist von {number} Tagen."}


def sent(embed):
    trimmer = HistoryTrimmer(max_tokens=700, embed=embed)
    return trimmer.trim([*german_talk(), {"role": "user", "content": QUESTION}]).messages


def test_a_model_that_does_not_know_a_language_leads_nothing_astray():
    by_words = sent(None)

    assert "Für Tulpen gilt eine Frist von 4 Tagen." in by_words[-1]["content"]
    assert sent(Misleading()) == by_words


def test_a_model_that_knows_it_is_listened_to():
    assert sent(Misleading("de")) != sent(None)
