"""What models write around an answer never reaches it, however the reply is cut into deltas."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.llm.reply_text import ReplyParser

TOOLS = ("search_documents", "search_session_history")
ANSWER = "Refunds take five days [1].\n\n- by card [1]\n- by bank [2]"
THOUGHT = "The user asks about refunds. Source [9] says five days."

THOUGHTS = {
    "think": f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    "think, glued": f"<think>{THOUGHT}</think>{ANSWER}",
    "think, opened by the template": f"{THOUGHT}\n</think>\n\n{ANSWER}",
    "think, opened by the template, other words": f"Refund, card, [9].</think>\n{ANSWER}",
    "think, empty": f"<think>\n\n</think>\n\n{ANSWER}",
    "think, twice": f"<think>{THOUGHT}</think>\n<think>{THOUGHT}</think>\n{ANSWER}",
    "think that speaks of its mark": f"<think>the mark </think> ends it\n</think>\n{ANSWER}",
    "thinking": f"<thinking>\n{THOUGHT}\n</thinking>\n{ANSWER}",
    "Thinking, in capitals": f"<thought>{THOUGHT}</thought>\n{ANSWER}",
    "reasoning, with an attribute": f'<reasoning effort="low">{THOUGHT}</reasoning>{ANSWER}',
    "seed": f"<seed:think>{THOUGHT}</seed:think>{ANSWER}",
    "Mistral": f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
    "Kimi": f"◁think▷{THOUGHT}◁/think▷{ANSWER}",
    "Cohere": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{ANSWER}"
    "<|END_RESPONSE|>",
    "OpenThinker": f"<|begin_of_thought|>\n{THOUGHT}<|end_of_thought|>\n\n{ANSWER}",
    "Harmony": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final"
    f"<|message|>{ANSWER}<|return|>",
    "Harmony, with a preamble": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant"
    f"<|channel|>commentary<|message|>I will look.<|end|><|start|>assistant<|channel|>final"
    f"<|message|>{ANSWER}",
    "Harmony, stripped": f"analysis{THOUGHT}assistantfinal{ANSWER}",
    "Harmony, stripped on lines": f"analysis\n{THOUGHT}\nassistantfinal\n{ANSWER}",
    "answer element": f"<think>{THOUGHT}</think>\n<answer>\n{ANSWER}\n</answer>",
}
LEFTOVERS = {
    "ChatML": f"{ANSWER}<|im_end|>",
    "ChatML, on a line": f"{ANSWER}\n<|im_end|>\n",
    "ChatML, another question": f"{ANSWER}<|im_end|>\n<|im_start|>user\nAnd cash?<|im_end|>",
    "ChatML, its own head": f"<|im_start|>assistant\n{ANSWER}<|im_end|>",
    "Llama": f"<|start_header_id|>assistant<|end_header_id|>\n\n{ANSWER}<|eot_id|>",
    "Llama, stripped head": f"assistant\n\n{ANSWER}",
    "Llama 2": f"[/INST] {ANSWER} </s>",
    "Llama 2, another question": f"{ANSWER}</s>[INST] And cash? [/INST] Cash takes [7].",
    "Gemma": f"{ANSWER}<end_of_turn>\n<start_of_turn>user\nAnd cash?",
    "DeepSeek": f"{ANSWER}<｜end▁of▁sentence｜>",
    "GPT": f"{ANSWER}<|endoftext|>",
    "fence": f"```markdown\n{ANSWER}\n```",
    "fence, with a leftover": f"```md\n{ANSWER}\n```<|im_end|>",
    "fence, with a word after it": f"```markdown\n{ANSWER}\n```\n",
    "fence without a name": f"```\n{ANSWER}\n```",
    "fence after a thought": f"<think>{THOUGHT}</think>\n```markdown\n{ANSWER}\n```\n",
}
MORE = [json.loads(line) for line in (Path(__file__).parent / "dialects.jsonl").open()]
DIALECTS = {each["form"]: each["reply"] for each in MORE if not each["calls"]}
KEPT = [
    "Write `<think>` before and `</think>` after it [1].",
    "Set the stop to `<|im_end|>` [1]. Then restart [2].",
    "Use this [1]:\n\n```xml\n<think>\n</think>\n<|im_end|>\n```\n\nThen go on [2].",
    "```bash\nrefund --card\n```\n\nRun that [1].",
    "```\nrefund --card\n```\n\nRun that [1].",
    'The tag "<think>" opens a thought [1].',
    "A reply ends with the mark </think> in some models [1].",
    "The token <|im_end|> ends a turn [1]. It is never shown [2].",
    "If a < b and c<d then refunds [1] end: `a<b`.",
    "Okay, refunds take five days [1].",
    "Let me be plain: five days [1].",
    "analysis of refunds: five days [1].",
    "Thought leaders: none [1].",
    "[1] says five days, [2] says six.",
    "[Refunds](https://example.com) take `[1]` days [1].",
    "{five} days [1]",
    "| a | b |\n|---|---|\n| 1 | `x` [1] |",
    "~~~\ncode\n~~~\nafter [1]",
    "An unclosed ` backtick [1].\nAnother line [2].",
    "````markdown\n```\ninner\n```\n````\ntext [1]",
    "Set it to &lt;b&gt; [1].",
    "<config>\n<days>5</days>\n</config>\n\nThat is the file [1].",
    "<sub>low</sub> and <days> are marks [1].",
    "<days> stands for a number [1].",
    "<details>\n<summary>More</summary>\nFive days [1].\n</details>",
    "Put it into the `<output>` element, or <output> without it [1].",
    '{"answer": 42}',
    'Send this [1]:\n\n```json\n{"content": "Hello"}\n```\n\nThen wait [2].',
    '```json\n{"content": "Hello"}\n```\n\nThat is the body [1].',
    "Log in [1]:\n\nUser: admin\nPassword: 1234 [2]",
    "Two parts [1].\n\n## User guide\n\nIt is printed [2].",
    "## Analysis\n\nRefunds take five days [1].",
    "The plan `A<|B` and x[|1|] stay [1].",
]


def cut(text, *sizes):
    """The text in pieces of each of these sizes, and whole."""
    return [[text[at : at + n] for at in range(0, len(text), n)] for n in (*sizes, 10_000)]


def read(pieces, tools=TOOLS):
    spoken, text = ReplyParser(tools), ""
    for delta in [each for piece in pieces for each in spoken.feed(piece)] + spoken.finish():
        text = "" if delta.discard else text + delta.text
    return text, spoken


@pytest.mark.parametrize("reply", [*THOUGHTS.values(), *LEFTOVERS.values(), *DIALECTS.values()])
def test_only_the_answer_comes_out(reply):
    for pieces in cut(reply, 1, 2, 3, 7):
        assert read(pieces)[0] == ANSWER, pieces


@pytest.mark.parametrize("text", KEPT)
def test_text_that_speaks_of_such_marks_stays(text):
    for pieces in cut(text, 1, 2, 5):
        assert read(pieces)[0] == text, pieces


MARKS = st.sampled_from(
    ["<think>", "</think>", "`", "```", "```json", "\n", "<|im_end|>", "[1]", "{", '{"name": "',
     "search_documents(", ")", "}", "<tool_call>", "</tool_call>", "<|channel|>", "final",
     "<|message|>", "Okay, ", "a b", " ", "analysis", "assistantfinal", "The end.", "[THINK]"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(MARKS, max_size=12), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_where_a_reply_is_cut_changes_nothing(marks, sizes):
    reply, pieces, at, turn = "".join(marks), [], 0, 0
    while at < len(reply):
        size = sizes[turn % len(sizes)]
        pieces.append(reply[at : at + size])
        at, turn = at + size, turn + 1
    text, spoken = read(pieces)
    whole, at_once = read([reply])

    assert (text, spoken.calls) == (whole, at_once.calls)


def test_a_thought_that_never_ends_is_no_answer():
    text, spoken = read(["<think>", THOUGHT])

    assert (text, spoken.thought) == ("", True)


def test_an_answer_is_not_held_back():
    spoken = ReplyParser(TOOLS)

    assert "".join(delta.text for delta in spoken.feed("Refunds take five")) == "Refunds take five"


def test_a_model_whose_thoughts_come_unopened_shows_none_of_them():
    spoken = ReplyParser(TOOLS, holds=True)

    assert spoken.feed("Refund, card, five.") == []
    after = spoken.feed("</think>\n\nFive days [1].")
    assert "".join(delta.text for delta in after) == "Five days [1]."


def test_what_nothing_follows_was_the_answer_and_no_thought():
    spoken = ReplyParser(TOOLS, holds=True)

    told = [*spoken.feed("Five days [1].</think>\n"), *spoken.finish()]

    assert "".join(delta.text for delta in told).startswith("Five days [1].")


CALL = ("search_documents", '{"query": "refund"}')
ARGUMENTS = '{"query": "refund"}'
CALLS = {
    "Hermes": '<tool_call>\n{"name": "search_documents", "arguments": {"query": "refund"}}\n'
    "</tool_call>",
    "Hermes, unclosed": '<tool_call>{"name": "search_documents", "arguments": {"query": "refund"}}',
    "bare": '{"name": "search_documents", "parameters": {"query": "refund"}}',
    "bare, in a list": '[{"name": "search_documents", "arguments": {"query": "refund"}}]',
    "bare, on lines": '{\n  "name": "search_documents",\n  "parameters": {"query": "refund"}\n}',
    "bare, a bracket short": '{"name": "search_documents", "parameters": {"query": "refund"}',
    "as the protocol has it": '{"type": "function", "function": {"name": "search_documents", '
    '"arguments": "{\\"query\\": \\"refund\\"}"}}',
    "tool and input": '{"tool": "search_documents", "tool_input": {"query": "refund"}}',
    "fence": '```json\n{"name": "search_documents", "arguments": {"query": "refund"}}\n```',
    "python tag": '<|python_tag|>{"name": "search_documents", "parameters": {"query": "refund"}}'
    "<|eom_id|>",
    "python tag, a call": '<|python_tag|>search_documents.call(query="refund")',
    "Llama, function": '<function=search_documents>{"query": "refund"}</function>',
    "Llama 4": '[search_documents(query="refund")]',
    "Gemma": '```tool_code\nprint(search_documents(query="refund"))\n```',
    "Qwen Coder": "<tool_call>\n<function=search_documents>\n<parameter=query>\nrefund\n"
    "</parameter>\n</function>\n</tool_call>",
    "GLM": "<tool_call>search_documents\n<arg_key>query</arg_key>\n<arg_value>refund</arg_value>\n"
    "</tool_call>",
    "Mistral": '[TOOL_CALLS][{"name": "search_documents", "arguments": {"query": "refund"}}]',
    "Mistral, newer": '[TOOL_CALLS]search_documents[ARGS]{"query": "refund"}',
    "Phi": '<|tool_call|>[{"name": "search_documents", "arguments": {"query": "refund"}}]',
    "Phi, older": 'functools[{"name": "search_documents", "arguments": {"query": "refund"}}]',
    "DeepSeek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>"
    'search_documents\n```json\n{"query": "refund"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.search_documents:0"
    '<|tool_call_argument_begin|>{"query": "refund"}<|tool_call_end|><|tool_calls_section_end|>',
    "Harmony": "<|channel|>commentary to=functions.search_documents <|constrain|>json<|message|>"
    '{"query": "refund"}<|call|>',
    "Claude": '<function_calls>\n<invoke name="search_documents">\n<parameter name="query">refund'
    "</parameter>\n</invoke>\n</function_calls>",
    "after a thought": f"<think>{THOUGHT}</think>\n" + '<tool_call>{"name": "search_documents", '
    '"arguments": {"query": "refund"}}</tool_call>',
}


OTHER_CALLS = {each["form"]: each["reply"] for each in MORE if each["calls"]}


@pytest.mark.parametrize("reply", OTHER_CALLS.values(), ids=OTHER_CALLS)
def test_calls_of_other_families_are_calls(reply):
    for pieces in cut(reply, 1, 3, 7):
        _, spoken = read(pieces)

        assert [call.name for call in spoken.calls] == [CALL[0]], pieces
        assert json.loads(spoken.calls[0].arguments) == {"query": "refund"}


@pytest.mark.parametrize("reply", CALLS.values(), ids=CALLS)
def test_calls_written_as_text_are_calls(reply):
    for pieces in cut(reply, 1, 4):
        text, spoken = read(pieces)

        assert [(call.name, call.arguments) for call in spoken.calls] == [CALL], pieces
        assert text == ""


def test_words_before_a_written_call_stay_text_and_both_calls_are_seen():
    call = '<tool_call>{"name": "search_documents", "arguments": {"query": "refund"}}</tool_call>'

    text, spoken = read([f"I will look that up.\n\n{call}\n{call}"])

    assert text == "I will look that up."
    assert len(spoken.calls) == 2


def test_a_call_of_an_unknown_tool_is_one_so_that_the_model_hears_of_it():
    _, marked = read(['<tool_call>{"name": "web", "arguments": {}}</tool_call>'])
    _, bare = read(['{"name": "web", "parameters": {"query": "refund"}}'])
    _, broken = read(["<tool_call>look it up</tool_call>"])

    assert [spoken.calls[0].name for spoken in (marked, bare, broken)] == [
        "web",
        "web",
        "unreadable_call",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'Send this [1]:\n\n```json\n{"name": "Aero", "arguments": 3}\n```\n\nThen wait [2].',
        '{"weight": 120}',
        "Call `search_documents(query)` for it [1].",
        "search_documents is a tool [1].",
    ],
)
def test_other_json_and_names_of_tools_are_text(text):
    assert read([text])[0] == text
    assert read(list(text))[0] == text


def test_nothing_is_called_where_no_tool_was_offered():
    text, spoken = read(['Five days [1].<tool_call>{"name": "search_documents"}</tool_call>'], ())

    assert (text, spoken.calls) == ("Five days [1].", [])
