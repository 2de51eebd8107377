"""What breaks by hand in summaries, recall, register and gate, the conversations notice.

Each breakage is tried on the conversations that are likely to see it; one that fails is enough.
"""

import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rag.chat import draft
from rag.chat.assistant import Assistant
from rag.memory.context import SUMMARY_TITLE
from rag.records import Role
from rag.render import gate
from rag.sessions.store import SqlSession

DATA = Path(__file__).parents[2] / "data" / "conversations"
pytestmark = pytest.mark.slow


def noticed(sample_replayer, names):
    return any(not sample_replayer.replay(found(name)).passed for name in names)


def found(name):
    return next(path for path in DATA.glob(f"{name}.*") if ".recorded." not in path.name)


# ── Breakages ────────────────────────────────────────────────────────────────────────────────


def summaries(change):
    """Each summary is sent changed."""

    def broken(message):
        before, title, summary = message.content.partition(SUMMARY_TITLE)
        is_summary = message.role == Role.SYSTEM and title
        return replace(message, content=before + title + change(summary)) if is_summary else message

    return sent(broken, context=True)


def recalled(change):
    """What is recalled is sent changed, and no summary beside it."""

    def broken(message):
        if message.role == Role.SYSTEM:
            return replace(message, content=message.content.partition(SUMMARY_TITLE)[0])
        return replace(message, content=change(message.content))

    return sent(broken, context=False)


def sent(broken, *, context):
    whole, shown = Assistant.preview, Assistant.context_messages

    def preview(*given):
        return tuple(map(broken, whole(*given)))

    def context_messages(*given):
        return tuple(map(broken, shown(*given)))

    changes = [(Assistant, "preview", preview)]
    return changes + ([(Assistant, "context_messages", context_messages)] if context else [])


def drop_first_lines(summary):
    lines = summary.splitlines()
    return "\n".join(lines[: len(lines) // 3] + lines[len(lines) // 3 + 3 :])


def without_uncited(text):
    return "\n".join(line for line in text.splitlines() if re.search(r"\[\d", line))


def each_number_one_more(summary):
    return re.sub(r"\[(\d+)\]", lambda found: f"[{int(found[1]) + 1}]", summary)


class GateWithOneSpelling(gate.MarkerGate):
    def feed(self, text):
        return text

    def finish(self):
        return ""


def numbers_shifted(register):
    def shifted(self, hits):
        return [replace(source, number=source.number + 1) for source in register(self, hits)]

    return shifted


def without_sources(append):
    return lambda self, messages, sources: append(self, messages, [])


INVENTS = "a-model-that-invents"
BREAKAGES = {
    "a number is dropped from summaries": (
        lambda: summaries(lambda text: text.replace("[1]", "")), ["markers-of-elsewhere"]),
    "paragraphs are dropped from summaries": (
        lambda: summaries(drop_first_lines), ["markers-of-elsewhere", INVENTS]),
    "numbers of summaries stand beside other words": (
        lambda: summaries(each_number_one_more), ["markers-of-elsewhere"]),
    "names are dropped from summaries": (
        lambda: summaries(lambda text: text.replace("Havörn", "")), ["and-the-other-vessel"]),
    "summaries are empty": (lambda: summaries(lambda text: ""), ["written-anew"]),
    "compaction does nothing": (
        lambda: [(Assistant, "compact", lambda *given, **more: None)], ["written-anew"]),
    "nothing is recalled": (
        lambda: recalled(lambda text: text[-200:]), ["asked-for-again"]),
    "recalled words lose their numbers": (
        lambda: recalled(lambda text: re.sub(r"\[\d+\]", "", text)), ["markers-of-elsewhere"]),
    "what the user said is forgotten": (
        lambda: recalled(without_uncited), ["asked-for-again"]),
    "a source gets another number the next time": (
        lambda: [(SqlSession, "register", numbers_shifted(SqlSession.register))],
        ["written-anew", "follow-a-number"]),
    "an imported transcript loses its sources": (
        lambda: [(SqlSession, "append", without_sources(SqlSession.append))],
        ["markers-of-elsewhere"]),
    "the gate lets every number out": (
        lambda: [(draft.RegisteredNumbers, "__call__", lambda self, number: True)], [INVENTS]),
    "the gate takes every number out": (
        lambda: [(draft.RegisteredNumbers, "__call__", lambda self, number: False)], [INVENTS]),
    "the gate knows one spelling": (
        lambda: [(gate, "MarkerGate", GateWithOneSpelling)], [INVENTS]),
}  # fmt: skip


@contextmanager
def broken_by(changes):
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, changed in changes:
            patch.setattr(owner, name, changed)
        yield


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_breakage_is_noticed(sample_replayer, breakage):
    changes, names = BREAKAGES[breakage]

    with broken_by(changes()):
        assert noticed(sample_replayer, names)


def test_what_is_not_broken_passes(sample_replayer):
    every = {name for _, names in BREAKAGES.values() for name in names}

    assert [name for name in sorted(every) if noticed(sample_replayer, [name])] == []
