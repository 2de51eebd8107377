"""Messages as clients really send them, and others: they fit, lose no number, and are not changed."""

# ruff: noqa: E501

import pytest

from rag import HistoryTrimmer
from tests.memory.test_trimmer import SYSTEM, assistant, conversation, numbers_in, size, user

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"q": "[77]"}'}}
ODD = {
    "parts": [user([{"type": "text", "text": "What?"}]), assistant([{"type": "text", "text": "It weighs 3 kg [1]."}])],
    "strings as parts": [user(["Hello", "there"]), assistant(["It weighs 3 kg [1]."])],
    "None": [user(None), assistant(None), user("x"), assistant("It weighs 3 kg [1].")],
    "no content": [{"role": "user"}, {"role": "assistant"}, assistant("It weighs 3 kg [1].")],
    "a refusal": [user("x"), assistant([{"type": "refusal", "refusal": "No."}]), assistant("It weighs 3 kg [1].")],
    "sound": [user([{"type": "input_audio", "input_audio": {"data": "A" * 9000}}]), assistant("It weighs 3 kg [1].")],
    "a call": [user("x"), assistant(None) | {"tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c", "content": "[77]"}, assistant("It weighs 3 kg [1].")],
    "an old call": [user("x"), assistant(None) | {"function_call": {"name": "f"}}, {"role": "function", "name": "f", "content": "[77]"}, assistant("It weighs 3 kg [1].")],
    "no text": [user(5), assistant(b"[77]"), user({"text": "[77]"}), assistant("It weighs 3 kg [1].")],
    "a surrogate": [user("\ud800\0"), assistant("Broken \ud800 but 3 kg [1].")],
    "one long word": [user("x"), assistant("a" * 50_000 + " [1].")],
    "a long user": [user("word " * 10_000), assistant("It weighs 3 kg [1].")],
    "Windows lines": [user("x\r\n"), assistant("It weighs 3 kg [1].\r\n")],
    "signs": [user("x"), assistant("The .NET 8 and C++ start at -15 °C, not at 15 °C [1].")],
    "Arabic": [user("ما الوزن؟"), assistant("تزن المضخة ٣ كغ [١].")],
    "Japanese": [user("重さは？"), assistant("重さは3キロです【1】。")],
    "emoji": [user("🙂"), assistant("👩‍👩‍👧 The 🚀 Pump 9 weighs 3 kg 🙂[1].")],
    "typed": [user("Previous conversation summary:\nIt weighs 9 kg [77]."), assistant("It weighs 3 kg [1].")],
    "code": [user("x"), assistant("Use `a[77]`:\n```\nx = a[77]\n```\nIt works [1].")],
    "code over lines": [user("x"), assistant("It weighs 3 kg.\n\n`a\n[1]`")],
    "code where lines are joined": [user("x"), assistant("It weighs 3 kg `a\n[1]` and more.")],
    "code that ends behind a sentence": [user("x"), assistant("It is <code>a. Then b [77] it is. So</code> and weighs 3 kg [1].")],
    "a bracket in a sentence of code": [user("x"), assistant("Run `a. Then b [77]. So` now [1].")],
}  # fmt: skip


@pytest.mark.parametrize("budget", [150, 400, 1200])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_messages_fit_and_lose_no_number(odd, budget):
    messages = [SYSTEM, *odd, *conversation(30, start=2), user("How heavy is it?")]
    before = repr(messages)
    trimmer = HistoryTrimmer(max_tokens=budget)

    trimmed = trimmer.trim(messages)

    report = trimmed.report
    kept = {*report.stated_citations, *report.recallable_citations, *report.listed_citations}
    assert 1 in kept
    assert 77 not in kept | numbers_in("".join(str(m["content"]) for m in trimmed.messages))
    assert size(trimmed.messages) <= budget
    assert [m["role"] for m in trimmed.messages].count("system") == 1
    assert trimmer.trim(messages).messages == trimmed.messages
    assert repr(messages) == before


@pytest.mark.parametrize("content", [42, 4.5, True, {"text": "What of part 7?"}], ids=repr)
def test_an_odd_question_stays_as_it_is(content):
    asked = [SYSTEM, *conversation(40), user(content)]

    trimmed = HistoryTrimmer(max_tokens=150).trim(asked)

    assert trimmed.was_trimmed
    assert trimmed.messages[-1]["content"] == content
    assert size(trimmed.messages) <= 150
