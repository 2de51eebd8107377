"""Words that many messages hold are not looked up where others tell more."""

import pytest

from rag.conversation import transcript
from rag.conversation.store import SqlConversationStore
from rag.database import migrate, open_engine
from rag.records import ImportedMessage


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setattr(transcript, "COMMON", 3)
    engine = open_engine(f"sqlite:///{tmp_path}/groundnote.db")
    migrate(engine)
    made = SqlConversationStore(engine).create("owner")
    texts = [f"The region {n} costs {'much' if n % 2 else 'little'}." for n in range(10)]
    made.append([ImportedMessage("user", text) for text in texts], [])
    yield made
    engine.dispose()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param(["region", "7"], [7], id="the rare word decides"),
        pytest.param(["region", "much"], [9, 7, 5, 3, 1], id="all are common: those with both"),
        pytest.param(["much", "little"], [9, 8, 7, 6, 5], id="never together: the newest"),
        pytest.param(["absent"], [], id="none"),
    ],
)
def test_common_words_alone_find_the_newest(session, words, found):
    assert [index for index, _ in session.matching(words, limit=5)] == found
