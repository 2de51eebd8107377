"""A judge speaks after the answer stands; nobody waits for it, and nothing breaks with it."""

import json
import threading
from dataclasses import replace

import pytest

from rag.chat.answers import Answering, Checks
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.draft import ModelWriter
from rag.errors import Conflict, ModelUnavailable, NotFound
from rag.records import Failed, Finished, Judged, Verdict
from rag.records import Judging as JudgingState
from rag.seams.models import JudgeVerdict
from rag.web.api.sse import encode
from rag.web.turns import Turns
from tests.chat.test_assistant import application, session  # noqa: F401 - fixtures
from tests.citations.test_copies import Meanings
from tests.fakes import ScriptedModel
from tests.waiting import LONG

ASKED = "When are refunds paid?"
SAID = "Refunds need the parcel here first, and then some working days go by [1]."


class Judging:
    """A judge that calls everything by one verdict, once it is let."""

    name = "wise-1"

    def __init__(self, verdict=Verdict.CONTRADICTED):
        self.verdict, self.asked = verdict, []
        self.is_let = threading.Event()
        self.is_let.set()

    def judge(self, statements):
        self.is_let.wait(LONG)
        self.asked += statements
        return [self.verdict and JudgeVerdict(self.verdict, "It is five days.") for _ in statements]


@pytest.fixture
def asking(application):  # noqa: F811
    def asking(judge, *replies, embedder=None):
        plain = application.assistant
        return Assistant(
            application.retriever,
            plain._followups,
            plain._memory,
            Answering(
                ModelWriter(ScriptedModel(*(replies or (SAID,)))),
                checks=Checks(judge, embedder),
            ),
            limits=TurnLimits(),
        )

    return asking


def test_what_is_open_is_judged_after_the_end_and_stored(asking, session):  # noqa: F811
    *_, finished, judged = asking(Judging()).ask(session, ASKED)

    assert isinstance(finished, Finished)
    assert [c.verdict for c in finished.message.answer.citations] == [Verdict.OPEN]
    assert isinstance(judged, Judged)
    (citation,) = judged.message.answer.citations
    assert (citation.verdict, citation.judged_by) == (Verdict.CONTRADICTED, "wise-1")
    assert session.message(1) == judged.message
    assert judged.message.content == finished.message.content


def test_what_means_the_same_in_no_word_of_its_source_is_open_and_judged(asking, session):  # noqa: F811
    said = "Mum or dad has to sign for a youngster [1]."
    judge = Judging(Verdict.SUPPORTED)

    *_, judged = asking(judge, said, embedder=Meanings(are_alike=True)).ask(session, ASKED)

    assert len(judge.asked) == 1
    assert judged.message.answer.citations[0].judged_by == "wise-1"


def test_nobody_waits_for_the_judge_and_the_next_turn_begins(asking, session):  # noqa: F811
    judge = Judging()
    judge.is_let.clear()
    turns = Turns(4)
    assistant = asking(judge, SAID, "Refunds are paid within five working days [1].")

    first = turns.start(session, lambda note: assistant.ask(session, ASKED, note=note))
    assert isinstance(first.end(timeout=LONG), Finished)
    second = turns.start(session, lambda note: assistant.ask(session, ASKED, note=note))
    assert isinstance(second.end(timeout=LONG), Finished)
    assert first.ended_at is None

    judge.is_let.set()
    told = [event for _, event in first.follow(ping_seconds=20) if event is not None]
    assert isinstance(told[-1], Judged)
    assert isinstance(first.end(), Finished)


def test_the_stream_tells_it_as_an_event_of_its_own(asking, session):  # noqa: F811
    judged = list(asking(Judging()).ask(session, ASKED))[-1]

    name, values = encode(judged, session_id=session.id)

    assert name == "judged"
    assert values["index"] == 1
    assert values["citations"][0]["judged_by"] == "wise-1"
    json.dumps(values)


def test_a_judge_without_an_opinion_leaves_the_verdicts(asking, session):  # noqa: F811
    *_, finished, judged = asking(Judging(None)).ask(session, ASKED)

    assert finished.message.answer.judging is JudgingState.PENDING
    assert judged.message.answer.judging is JudgingState.DONE
    assert judged.message.answer.citations == finished.message.answer.citations


def test_without_a_judge_nothing_is_to_come(asking, session):  # noqa: F811
    *_, finished = asking(None).ask(session, ASKED)

    assert finished.message.answer.judging is JudgingState.OFF


class Broken:
    """A judge that fails."""

    name = "broken-1"

    def __init__(self, error):
        self.error = error

    def judge(self, statements):
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModelUnavailable("broken-1 is away."), "The check failed: broken-1 is away."),
        (RuntimeError("x"), "The check failed: something went wrong on our side."),
    ],
    ids=["away", "broken"],
)
def test_that_the_check_failed_is_said_and_stored(asking, session, error, said):  # noqa: F811
    *_, finished, judged = asking(Broken(error)).ask(session, ASKED)

    answer = session.message(1).answer
    assert (answer.judging, answer.judging_failure) == (JudgingState.FAILED, said)
    assert judged.message.answer == answer
    assert answer.citations == finished.message.answer.citations


def test_a_judge_may_overrule_a_warning(asking, session):  # noqa: F811
    said = "Refunds are paid within fifty working days [1]."

    *_, finished, judged = asking(Judging(Verdict.SUPPORTED), said).ask(session, ASKED)

    assert [c.verdict.is_warning for c in finished.message.answer.citations] == [True]
    assert [c.verdict for c in judged.message.answer.citations] == [Verdict.SUPPORTED]


def test_a_conversation_deleted_meanwhile_ends_well(asking, session):  # noqa: F811
    events = asking(Judging()).ask(session, ASKED)
    seen = [next(events)]
    while not isinstance(seen[-1], Finished):
        seen.append(next(events))
    session.delete()

    assert list(events) == []
    assert not [each for each in seen if isinstance(each, Failed)]


def test_only_a_finished_answer_is_judged(asking, session):  # noqa: F811
    list(asking(None).ask(session, ASKED))
    question, answer = session.messages()

    with pytest.raises(Conflict):
        session.judge(replace(answer, index=question.index))
    session.delete()
    with pytest.raises(NotFound):
        session.judge(answer)
