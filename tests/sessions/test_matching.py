"""Words that many messages hold are not looked up where others tell more."""

from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from rag import database
from rag.database import migrate, open_engine, writing
from rag.records import ImportedMessage, MessageStatus
from rag.sessions import matching
from rag.sessions.store import SqlConversationStore


@pytest.fixture
def session(engine, monkeypatch):
    monkeypatch.setattr(matching, "COMMON", 3)
    made = SqlConversationStore(engine).create("owner")
    texts = [f"The region {n} costs {'much' if n % 2 else 'little'}." for n in range(10)]
    made.append([ImportedMessage("user", text) for text in texts], [])
    return made


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
    assert [match.index for match in session.matching(words, limit=5)] == found


class TestWordsOfAboutTheSameMeaning:
    @pytest.mark.parametrize(
        ("alike", "found"),
        [
            pytest.param({"seven": ["7", "VII"]}, [7], id="a rare one decides"),
            pytest.param({"zone": ["region"], "plenty": ["much"]}, [9, 7, 5, 3, 1], id="common"),
            pytest.param({"8": ["7"]}, [8, 7], id="the word itself comes first"),
        ],
    )
    def test_stand_for_those_that_nobody_said(self, session, alike, found):
        matched = session.matching(list(alike), limit=5, alike=alike)

        assert [match.index for match in matched] == found


def test_a_question_does_not_find_itself(session):
    asked = session.begin("Which zone?").question.index
    words = {"words": ["zone"], "limit": 2, "alike": {"zone": ["region"]}}

    assert [match.index for match in session.matching(**words)] == [asked]
    assert [match.index for match in session.matching(**words, before=asked)] == [9, 8]


class TestIndex:
    def test_of_one_session_says_nothing_of_another(self, session):
        store = SqlConversationStore(session._engine)
        other = store.create("owner")
        other.append([ImportedMessage("user", "A region without equal.")], [])

        assert [match.index for match in other.matching(["region", "equal"], limit=9)] == [0]
        assert session.matching(["equal"], limit=9) == []

    def test_forgets_a_deleted_session_and_keeps_the_others(self, session):
        other = SqlConversationStore(session._engine).create("owner")
        other.append([ImportedMessage("user", "The region 7 is far.")], [])
        session.delete()

        assert [match.index for match in other.matching(["7"], limit=9)] == [0]
        with session._engine.connect() as connection:
            held = "SELECT count(*) FROM messages_words WHERE messages_words MATCH 'region'"
            assert connection.exec_driver_sql(held).scalar_one() == 1

    def test_follows_an_answer_that_is_written_and_written_again(self, session):
        turn = session.begin("Which zeppelin?")
        done = {"status": MessageStatus.COMPLETE}
        session.finish(replace(turn.answer, content="The hindenburg.", **done))
        again = session.begin_again(turn.answer.index)
        session.finish(replace(again.answer, content="The graf.", **done))

        assert [match.index for match in session.matching(["graf"], limit=9)] == [11]
        assert session.message(11).content == "The graf."

    def test_is_built_anew_from_messages_of_an_earlier_version(self, tmp_path):
        engine = open_engine(f"sqlite:///{tmp_path}/old.db")
        at_version(engine, "0002")
        with writing(engine) as connection:
            connection.exec_driver_sql(
                "INSERT INTO sessions VALUES ('s', 'ada', '', '{}', '2026-01-01', '2026-01-01', "
                "1, 1, 0, 0)"
            )
            connection.exec_driver_sql(
                "INSERT INTO messages VALUES (5, 's', 0, 0, 0, 'user', 'Zeppelins?', 'complete', "
                "'2026-01-01', '{}')"
            )
        migrate(engine)
        session = SqlConversationStore(engine).open("s", owner="ada")

        session.begin("And zeppelins again?")

        assert [match.index for match in session.matching(["zeppelin"], limit=9)] == [0, 1]
        engine.dispose()


def at_version(engine, version):
    config = Config()
    config.set_main_option(
        "script_location", str(Path(database.__file__).parents[1] / "migrations")
    )
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
