"""Every time limit of a model call stands in one place, and advice names the setting that acts."""

import re
import socket
from functools import reduce
from pathlib import Path

import pytest

from rag.chat.follow_ups import FollowUps, LastTurn
from rag.errors import ModelUnavailable
from rag.llm.judges import ModelJudge
from rag.memory.summariser import ApplicationModel
from rag.records import EVERYTHING
from rag.runtime.budget import HangUp, reply_in_time
from rag.seams import models
from rag.seams.models import ANSWER, OpenStatement, Patience
from rag.settings import Settings
from rag.wiring.components import open_judge, open_model
from tests import openai_server as server_side
from tests.openai_server import QUESTION, OpenAIServer, asked, error_of, model_at

KINDS = [each for each in vars(models).values() if isinstance(each, Patience)]
SET = [each for each in KINDS if each.setting]


@pytest.mark.parametrize("kind", SET, ids=lambda kind: kind.setting)
def test_a_setting_is_one_and_has_the_limit_as_its_default(kind):
    assert reduce(getattr, kind.setting.split("."), Settings()) == kind.seconds


def test_no_other_module_of_models_has_a_limit_of_its_own():
    own = re.compile(r"^\w*(?:TIMEOUT|WAIT|PATIENCE|ASK)\w*SECONDS = [\d.]+", re.MULTILINE)
    rooms = ("llm", "memory", "followups", "answers", "turns")
    files = [path for room in rooms for path in Path("rag", room).rglob("*.py")]

    found = [f"{path}: {each}" for path in files for each in own.findall(path.read_text())]

    assert [each for each in found if "_ASK_AGAIN" not in each] == []  # which is no call


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.setting or "none")
@pytest.mark.parametrize("behaviour", [server_side.hang, server_side.only_pings])
def test_silence_names_the_setting_that_acts(kind, behaviour):
    whole = None if kind.setting == ANSWER.setting else kind.set_to(0.2)
    with OpenAIServer(behaviour()) as server:
        own = 0.2 if whole is None else 600
        error, _ = error_of(model_at(server, timeout_seconds=own), asked(patience=whole))

    advice = f"Ask again, or raise {kind.setting}." if kind.setting else "seconds. Ask again."
    assert str(error).endswith(advice)


def test_a_reply_that_comes_too_slowly_is_ended_by_the_limit_of_the_whole():
    """Each piece comes in time: to raise the limit between pieces would change nothing."""
    with OpenAIServer(server_side.slowly("{ and so on and on and on", seconds_a_word=0.05)) as one:
        _said, failure = reply_in_time(
            model_at(one, timeout_seconds=60),
            [QUESTION],
            max_tokens=50,
            patience=models.JUDGEMENT.set_to(0.2),
        )

    assert "0.2 seconds" in str(failure)
    assert "raise checks.timeout_seconds" in str(failure)


def test_a_server_that_takes_no_connection_is_away_and_not_slow(monkeypatch):
    monkeypatch.setattr("rag.llm.openai_compatible.CONNECT_SECONDS", 0.3)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        full = [socket.socket() for _ in range(4)]  # nobody takes these: there is no room behind
        for each in full:
            each.setblocking(False)
            each.connect_ex(listening.getsockname())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        settings = Settings(llm={"base_url": url, "model": "fake", "max_retries": 0})
        error, _ = error_of(open_model(settings))
        for each in full:
            each.close()

    assert isinstance(error, ModelUnavailable)
    assert "No model server answers" in str(error)
    assert "timeout_seconds" not in str(error)


class TestSettings:
    """What each kind of call is given by the settings is what it waits."""

    @pytest.fixture
    def server(self):
        with OpenAIServer(*[server_side.hang()] * 3) as made:
            yield made

    @pytest.fixture
    def settings(self, server):
        return Settings(
            llm={"base_url": server.url, "model": "fake", "max_retries": 0},
            checks={"timeout_seconds": 0.2},
        )

    def test_of_a_judge(self, settings):
        judge = open_judge(settings)
        assert isinstance(judge, ModelJudge)

        with pytest.raises(ModelUnavailable, match=r"raise checks\.timeout_seconds"):
            judge.judge([OpenStatement("It weighs 5 g.", ("It weighs 5 g.",))])

    def test_of_a_follow_up_lead_to_the_rules(self, settings):
        model = open_model(settings)
        followups = FollowUps(
            model=model,
            lexicon=lambda readable: ("Aero 5", "Aero 6"),
            patience=models.FOLLOW_UP.set_to(0.2),
        )

        last = LastTurn("What does the Aero 5 cost?")
        assert followups.resolve("And the Aero 6?", last, EVERYTHING).method == "rules"

    def test_of_a_summary(self, settings):
        limit = models.SUMMARY.set_to(0.2)

        with pytest.raises(ModelUnavailable, match=r"raise summarization_settings\.timeout_sec"):
            ApplicationModel(open_model(settings), 9, 0, limit)("Say", "text", HangUp())
