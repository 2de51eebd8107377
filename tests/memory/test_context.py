"""What is sent, where not all of it fits. A token is a word here, and a message costs its frame."""

from datetime import UTC, datetime

from rag.memory.context import ContextParts, Pair, assemble
from rag.records import Message, MessageStatus, Role, Summary, SummaryReport
from rag.sessions.rows import overlaps

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def words(text):
    return len(text.split())


def pair(index, question, answer):
    said = [
        Message(index + at, index // 2, role, text, MessageStatus.COMPLETE, NOW)
        for at, (role, text) in enumerate([(Role.USER, question), (Role.ASSISTANT, answer)])
    ]
    return Pair(*said)


def summary(start, end, text="kept", *, id=None):
    return Summary(start, end, text, (), (), SummaryReport(0, 0, 0, 0), words(text), id=id)


def sent(parts, budget_tokens):
    context = assemble(parts, None, budget_tokens=budget_tokens, count=words)
    return [message.content for message in context.messages]


def test_a_pair_that_does_not_fit_leaves_no_hole():
    recent = [pair(0, "first", "short"), pair(2, "second", "long " * 200), pair(4, "last", "short")]

    *_, question = told = sent(ContextParts("rules", "Now?", recent=recent), 80)

    assert told == ["rules", "last", "short", question]


def test_of_summaries_that_do_not_all_fit_the_newest_stays():
    old, new = summary(0, 8, "old " * 200), summary(8, 12, "The Aero 5 weighs 120 g [1].")

    rules, _question = sent(ContextParts("rules", "Now?", summaries=[old, new]), 80)

    assert "The Aero 5 weighs 120 g [1]." in rules
    assert "Messages before 8 are left out" in rules
    assert "old old" not in rules


def test_summaries_side_by_side_do_not_overlap():
    active = [summary(4, 8, id=1)]

    for start, end, meet in ((0, 4, False), (8, 12, False), (0, 5, True), (7, 12, True)):
        assert overlaps(active, summary(start, end), ()) is meet
        assert not overlaps(active, summary(start, end), (1,))
