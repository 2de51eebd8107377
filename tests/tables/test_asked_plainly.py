"""What people ask in their own words: every word is used, or nothing is claimed."""

import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from rag.tables.asking.meaning import Told
from tests.applications import application_of

BANDS = """band,name,height,n_covers,eyes
Vela,Ann Berg,72,9,blue
Vela,Ben Roth,68,1,brown
Orla,Cem Acar,75,2,blue
"""
README = """# bands

| Header | Description |
| --- | --- |
| `band` | The full name of the band of each member |
| `name` | The name of each member |
| `height` | How tall each member is, in inches |
| `n_covers` | Number of magazine fronts with this member |
| `eyes` | The colour of the member's eyes |
"""


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    folder = tmp_path_factory.mktemp("files")
    for name, text in (("bands.csv", BANDS), ("README.md", README)):
        (folder / name).write_text(text)
    files = [IncomingFile.from_path(folder / n, name=f"x/{n}") for n in ("bands.csv", "README.md")]
    list(application.ingestion.ingest(files))
    yield application
    application.stop()


@pytest.fixture
def asked(application):
    def asked(question):
        *_, end = application.assistant.ask(application.store.create("me"), question)
        return end.message.answer

    return asked


@pytest.mark.parametrize(
    ("question", "said"),
    [
        pytest.param("How tall is Ann Berg?", "72", id="one cell by an adjective"),
        pytest.param("How many members have blue eyes?", "**2** rows", id="a noun of a dictionary"),
        pytest.param("How many fronts has Ann Berg had?", "**9**", id="a word of a description"),
        pytest.param(
            "Who is the tallest band member?",
            "**Cem Acar** is the tallest, at 75.",
            id="a sentence first",
        ),
    ],
)
def test_is_computed(asked, question, said):
    answer = asked(question)

    assert answer.result is not None
    assert said in answer.text


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("How many children have blue eyes?", id="a noun that nothing explains"),
        pytest.param("Which band sold the most?", id="a verb that nothing explains"),
        pytest.param("How much does Ann Berg earn?", id="of one row"),
        pytest.param("Which tallest member lasts the longest?", id="two ends"),
    ],
)
def test_is_never_claimed(asked, question):
    assert asked(question).result is None


def test_a_word_means_a_name_only_where_no_other_is_as_near():
    vectors = {"weigh": (1.0, 0.0), "weight": (0.9, 0.44), "load": (0.85, 0.53), "age": (0.0, 1.0)}

    def meaning(texts):
        import numpy as np

        return np.array([vectors[text] for text in texts])

    told = Told(meaning=meaning)
    names = {name: (name, "") for name in ("weight", "age")}

    assert told.nearest("weigh", names) == ("weight", "")
    assert told.nearest("weigh", names | {"load": ("load", "")}) is None
    assert Told().nearest("weigh", names) is None
