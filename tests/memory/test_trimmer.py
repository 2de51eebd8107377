"""A chat history stays small and loses no citation and no name, whatever the model does."""

import copy
import json
import random
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag import HistoryTrimmer
from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers
from rag.errors import TooLarge
from rag.language.names import contains_name
from rag.memory.summary import spelled_out
from rag.tokens import count_tokens

SYSTEM = {"role": "system", "content": "Answer from the documents."}


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def conversation(turns, *, start=1):
    """Each turn has a product and a fact of its own."""
    messages = []
    for number in range(start, start + turns):
        messages += [
            user(f"What does the Vega {number} weigh, and does it suit a small office?"),
            assistant(
                f"The Vega {number} weighs {100 + number} g [{number}]. "
                "It suits a small office well, because it is quiet and easy to carry around."
            ),
        ]
    return messages


def numbers_in(text):
    """Those of markers and of ranges."""
    return set(cited_numbers(canonical(spelled_out(text))))


def is_recalled(trimmer, messages, number):
    """Whether a number comes back when it is asked for."""
    asked = f"What does [{number}] say?"
    sent = trimmer.trim([*messages, user(asked)]).messages
    return number in numbers_in("\n".join(m["content"] for m in sent).removesuffix(asked))


def size(messages):
    return sum(count_tokens(str(m["content"] or "")) + 4 for m in messages) + 3


class Client:
    """An OpenAI client that answers from a script: texts, exceptions, or a function."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.prompts = []
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create))

    def create(self, *, model, messages, temperature=None, max_tokens=None):
        self.prompts.append("\n".join(message["content"] for message in messages))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        reply = reply(self.prompts[-1]) if callable(reply) else reply
        if isinstance(reply, Exception):
            raise reply
        choice = SimpleNamespace(message=SimpleNamespace(content=reply))
        return SimpleNamespace(choices=[choice])


class TestAHistoryThatFits:
    def test_is_returned_as_it_is(self):
        messages = [SYSTEM, *conversation(3)]

        trimmed = HistoryTrimmer(max_tokens=4000).trim(messages)

        assert trimmed.messages == messages
        assert not trimmed.was_trimmed
        assert trimmed.report is None

    @pytest.mark.parametrize("turns", [1, 2, 3])
    def test_keeps_up_to_two_messages_a_turn_and_the_system_message(self, turns):
        messages = [SYSTEM, *conversation(turns)]

        assert not HistoryTrimmer(max_history_turns=3).trim(messages).was_trimmed

    def test_may_be_empty(self):
        assert HistoryTrimmer().trim([]).messages == []


class TestMaxHistoryTurns:
    def test_leaves_one_system_message_with_the_summary_and_the_last_turns(self):
        messages = [SYSTEM, *conversation(6)]

        trimmed = HistoryTrimmer(max_history_turns=2).trim(messages)

        rules, _, summary = trimmed.messages[0]["content"].partition("\n\n")
        assert trimmed.was_trimmed
        assert trimmed.messages[0]["role"] == "system"
        assert rules == SYSTEM["content"]
        assert summary.startswith("Previous conversation summary:")
        assert trimmed.messages[1:] == messages[-4:]

    def test_counts_an_open_question_as_a_turn(self):
        messages = [SYSTEM, *conversation(4), user("And the price?")]

        trimmed = HistoryTrimmer(max_history_turns=2).trim(messages)

        assert trimmed.messages[1:] == messages[-3:]

    def test_of_zero_keeps_only_the_open_question(self):
        messages = [SYSTEM, *conversation(4), user("And the price?")]

        trimmed = HistoryTrimmer(max_history_turns=0).trim(messages)

        assert trimmed.messages[1:] == messages[-1:]


class TestTheSummary:
    def test_reports_what_is_stated_and_what_a_question_brings_back(self):
        report = HistoryTrimmer(max_history_turns=2).trim([SYSTEM, *conversation(6)]).report

        both = {*report.stated_citations, *report.recallable_citations}
        assert both == {1, 2, 3, 4}
        assert (report.citations_kept, report.citations_lost) == (4, 0)
        assert report.listed_citations == ()
        assert report.model == "extractive"

    def test_repeats_what_the_user_said_and_asks_nothing(self):
        messages = [SYSTEM, *conversation(3)]
        messages[1] = user("What weight has the Vega 1? It must not exceed 105 g. And cheap?")

        trimmed = HistoryTrimmer(max_history_turns=1).trim(messages)

        text = trimmed.messages[0]["content"]
        assert "It must not exceed 105 g.\n" in text
        assert "- And cheap?" not in text

    def test_lists_each_number_literally(self):
        trimmed = HistoryTrimmer(max_history_turns=1).trim([SYSTEM, *conversation(60)])

        listed = "".join(f"[{number}]" for number in range(1, 60))
        assert f"Sources: {listed}\n" in trimmed.messages[0]["content"]
        assert trimmed.report.citations_kept == 59

    def test_lists_the_products_that_the_caller_knows(self):
        trimmer = HistoryTrimmer(max_history_turns=1, products=["Vega 1", "Vega 2"])

        text = trimmer.trim([SYSTEM, *conversation(4)]).messages[0]["content"]

        assert "Products: Vega 1, Vega 2" in text

    def test_asks_the_model_of_the_client_unless_it_shall_not(self):
        client = Client("Answered:\n- The Vega 1 weighs 101 g [1]. ‖ m2")
        messages = [SYSTEM, *conversation(3)]

        options = {"client": client, "model": "m", "max_history_turns": 1}
        plain = HistoryTrimmer(**options, summarise=False).trim(messages)
        assert client.prompts == []
        written = HistoryTrimmer(**options).trim(messages)

        assert plain.report.model == "extractive"
        assert written.report.model == "m"
        assert written.report.written == 1

    def test_takes_the_old_option_and_says_what_it_means_now(self):
        with pytest.warns(DeprecationWarning, match="writes the summary"):
            HistoryTrimmer(thread=True)

    @pytest.mark.parametrize("words", ["It must exceed 105 g.", "Wants 40 euros.", "[1] is best."])
    def test_repeats_no_word_about_the_user_that_the_user_did_not_say(self, words):
        client = Client(json.dumps({"keep": [words], "user": [words], "thread": [words]}))

        trimmed = HistoryTrimmer(client=client, model="m", max_history_turns=1).trim(
            [SYSTEM, user("At most 105 g, not the 400 euros one."), *conversation(3)[1:]]
        )

        assert words not in trimmed.messages[0]["content"]

    def test_repeats_no_word_of_a_model_beside_a_number(self):
        client = Client(
            "Vega 1 weighs 102 g [1]. Vega 20 weighs 102 g [2]. All ship worldwide [99]."
        )

        trimmed = HistoryTrimmer(client=client, model="m", max_history_turns=1).trim(
            [SYSTEM, *conversation(3)]
        )

        text = trimmed.messages[0]["content"]
        assert numbers_in(text) == {1, 2}
        assert "Vega 1 weighs 102 g" not in text
        assert "worldwide" not in text
        assert "The Vega 1 weighs 101 g [1]" in text
        assert len(client.prompts) == 2  # the clauses that failed were to be written again

    @pytest.mark.parametrize(
        "reply",
        [
            pytest.param("", id="nothing"),
            pytest.param(None, id="no content"),
            pytest.param("x" * 100_000, id="a book"),
            pytest.param("<html>502 Bad Gateway nginx</html>", id="a proxy's error page"),
            pytest.param("[1][2][3]" * 50, id="markers"),
            pytest.param('{"keep": [1], "thread"', id="half of some JSON"),
            pytest.param("[" * 50_000, id="deep JSON"),
            pytest.param(TimeoutError("too late"), id="timeout"),
            pytest.param(RuntimeError("Error code: 500"), id="server error"),
            pytest.param(ValueError("\ud800"), id="an error of odd characters"),
        ],
    )
    def test_stands_without_the_model(self, reply):
        client = Client(reply)
        messages = [SYSTEM, *conversation(4)]
        trimmer = HistoryTrimmer(client=client, model="m", max_history_turns=1)

        trimmed = trimmer.trim(messages)

        text = trimmed.messages[0]["content"]
        assert numbers_in(text) == {1, 2, 3}
        assert trimmed.report.model == "extractive"
        assert "502" not in text
        assert len(client.prompts) == 1
        assert trimmed.report.problems

    def test_of_numbers_with_many_gaps_brings_back_what_it_cannot_list(self):
        answers = [f"Property {n} of the thing is {n * 3} mm [{n * 2}]." for n in range(1, 600)]
        messages = [SYSTEM]
        for at in range(0, len(answers), 30):
            messages += [user("More?"), assistant(" ".join(answers[at : at + 30]))]
        trimmer = HistoryTrimmer(max_tokens=1200)

        trimmed = trimmer.trim(messages)

        assert ", …" in trimmed.messages[0]["content"]
        assert trimmed.report.citations_lost == 0
        assert size(trimmed.messages) <= 1200
        assert all(is_recalled(trimmer, messages, number) for number in range(2, 1000, 98))


class TestTrimmingAgain:
    def test_of_the_same_history_asks_nothing(self):
        client = Client("Nothing.")
        trimmer = HistoryTrimmer(client=client, model="m", max_history_turns=2)
        messages = [SYSTEM, *conversation(8)]

        first = trimmer.trim(messages)
        asked = len(client.prompts)
        second = trimmer.trim(copy.deepcopy(messages))

        assert second.messages == first.messages
        assert len(client.prompts) == asked

    def test_recognises_a_conversation_that_goes_on_differently(self):
        trimmer = HistoryTrimmer(max_history_turns=2)
        trimmer.trim([SYSTEM, *conversation(6)])

        fork = [
            SYSTEM,
            *conversation(5),
            user("What about the Nova 3?"),
            assistant("It is red [9]."),
        ]
        trimmed = trimmer.trim(fork)

        assert trimmed.messages[1:] == fork[-4:]
        assert "[6]" not in trimmed.messages[0]["content"]

    def test_notices_a_message_that_was_changed_in_place(self):
        trimmer = HistoryTrimmer(max_history_turns=2)
        messages = [SYSTEM, *conversation(6)]
        trimmer.trim(messages)

        messages[2]["content"] = "The Vega 1 weighs 999 g [77]."
        text = trimmer.trim(messages).messages[0]["content"]

        assert 77 in numbers_in(text)
        assert 1 not in numbers_in(text)

    def test_keeps_conversations_apart(self):
        trimmer = HistoryTrimmer(max_history_turns=1)

        trimmer.trim([SYSTEM, *conversation(4)])
        other = trimmer.trim([SYSTEM, *conversation(4, start=50)])

        assert numbers_in(other.messages[0]["content"]) == {50, 51, 52}

    def test_never_changes_its_input(self):
        messages = [SYSTEM, *conversation(30)]
        before = copy.deepcopy(messages)

        trimmed = HistoryTrimmer(max_tokens=900).trim(messages)
        trimmed.messages[-1]["content"] = "changed by the caller"

        assert messages == before

    def test_of_its_own_output_loses_nothing(self):
        first = HistoryTrimmer(max_history_turns=2).trim([SYSTEM, *conversation(8)])

        again = HistoryTrimmer(max_history_turns=1).trim(
            [*first.messages, *conversation(3, start=9)]
        )

        text = again.messages[0]["content"]
        assert numbers_in(text) >= set(range(1, 9))
        assert text.count("Previous conversation summary:") == 1
        assert text.startswith(SYSTEM["content"])


class TestOddHistories:
    @pytest.mark.parametrize(
        "messages",
        [
            pytest.param([user(f"Vega {n}, please") for n in range(400)], id="only user turns"),
            pytest.param([assistant(f"It is {n} [{n + 1}].") for n in range(300)], id="answers"),
            pytest.param(
                [{"role": "system", "content": f"Rule {n}."} for n in range(10)] + conversation(30),
                id="ten system messages",
            ),
            pytest.param(
                [
                    *conversation(10),
                    {"role": "system", "content": "Speak German."},
                    *conversation(20),
                ],
                id="a system message in the middle",
            ),
            pytest.param(
                [{"role": "critic", "content": f"No [{n + 1}]!"} for n in range(300)],
                id="unknown roles",
            ),
            pytest.param(
                [user("a \ud800 b"), assistant("c \udfff [1]."), *conversation(30)],
                id="lone surrogates",
            ),
            pytest.param(
                [user("x" * 200_000), assistant("y " * 100_000 + "[7]."), *conversation(3)],
                id="many characters",
            ),
            pytest.param(
                [user("Go"), assistant("mild words " * 10_000 + "[7]."), *conversation(3)],
                id="a paragraph of 20,000 words",
            ),
            pytest.param([user("Go"), assistant("[33]" * 3_000), *conversation(3)], id="markers"),
            pytest.param([user("Vega 5 " * 5_000), assistant("Yes."), *conversation(3)], id="name"),
            pytest.param(
                [{"role": "user"}, {"role": "assistant", "content": None}] * 400, id="empty"
            ),
            pytest.param(
                [
                    user("A table?"),
                    assistant("| a |\n|---|\n" + "| Vega 3 | 5 g [4] |" * 400),
                    *conversation(3),
                ],
                id="a table on one line",
            ),
        ],
    )
    def test_fit_and_keep_their_citations(self, messages):
        raw = "\n".join(m.get("content") or "" for m in messages)

        trimmed = HistoryTrimmer(max_tokens=1500).trim(messages)

        after = "\n".join(m.get("content") or "" for m in trimmed.messages)
        assert sum(count_tokens(m.get("content") or "") + 4 for m in trimmed.messages) <= 1500
        given = {
            n
            for m in messages
            if m["role"] != "user"
            for n in cited_numbers(m.get("content") or "")
        }
        assert given <= numbers_in(after)
        assert numbers_in(after) <= set(cited_numbers(raw))
        assert trimmed.was_trimmed

    def test_keep_a_tool_message_with_its_call(self):
        call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages = [
            SYSTEM,
            *conversation(6),
            user("Look it up."),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "Found: 7 kg [40]."},
        ]

        trimmed = HistoryTrimmer(max_history_turns=1).trim(messages)

        assert trimmed.messages[1:] == messages[-3:]

    def test_count_the_numbers_that_a_tool_gave_only_where_an_answer_cites_them(self):
        found = {"role": "tool", "tool_call_id": "1", "content": "[40] Manual: 7 kg\n[41] List"}
        messages = [SYSTEM, user("Look."), found, assistant("It weighs 7 kg [40].")]

        trimmed = HistoryTrimmer(max_history_turns=1).trim([*messages, *conversation(4)])

        summary = trimmed.messages[0]["content"]
        assert "It weighs 7 kg [40]." in summary
        assert "[41]" not in summary

    def test_may_hold_parts_with_pictures(self):
        picture = {
            "type": "image_url",
            "image_url": {"url": "data:image/png," + "A" * 90_000},
        }
        parts = [{"type": "text", "text": "What is this Vega 77?"}, picture]
        messages = [{"role": "user", "content": parts}, assistant("A lamp [5]."), *conversation(9)]

        trimmed = HistoryTrimmer(max_tokens=900).trim(messages)

        assert 5 in numbers_in(trimmed.messages[0]["content"])

    def test_keep_system_messages_of_the_middle(self):
        rule = {"role": "developer", "content": "Speak German from now on."}

        trimmed = HistoryTrimmer(max_history_turns=1).trim(
            [SYSTEM, *conversation(4), rule, *conversation(4, start=5)]
        )

        assert rule["content"] in trimmed.messages[0]["content"]
        assert [m["role"] for m in trimmed.messages].count("system") == 1

    def test_send_user_and_assistant_in_turn(self):
        messages = [
            assistant("Welcome!"),
            *conversation(30),
            user("Hello?"),
            user("Are you there?"),
            assistant("Yes."),
            assistant("Sorry."),
            user("Good."),
        ]

        roles = [m["role"] for m in HistoryTrimmer(max_tokens=800).trim(messages).messages]

        assert roles[0] == "system"
        assert roles[1:] == (["user", "assistant"] * 30)[: len(roles) - 1]

    def test_count_what_a_user_types_only_if_an_answer_gave_it(self):
        messages = [
            user("See [77] and [1]"),
            assistant("The Vega 1 weighs 101 g [1]."),
            user("So [1] says so, not [88]."),
            assistant("Yes."),
            *conversation(2, start=5),
        ]

        text = HistoryTrimmer(max_history_turns=1).trim(messages).messages[0]["content"]

        assert numbers_in(text) == {1, 5}

    @pytest.mark.parametrize("odd", ["hello", None, ["role", "user"], SimpleNamespace(role="user")])
    def test_refuse_what_is_no_message_and_stay_usable(self, odd):
        trimmer = HistoryTrimmer()
        messages = [{"role": "user", "content": "hi"}]

        with pytest.raises(TypeError, match=r"Message 1 is a .*A message is a dict.*model_dump"):
            trimmer.trim([*messages, odd])

        assert trimmer.trim(messages).messages == messages

    def test_refuse_a_question_that_cannot_fit(self):
        with pytest.raises(TooLarge, match=r"take \d+ tokens, but max_tokens is 200"):
            HistoryTrimmer(max_tokens=200).trim([*conversation(3), user("word " * 400)])


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"client": object()}, "name of its model"),
            ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
            ({"max_history_turns": -1}, "max_history_turns must be at least 0"),
            ({"recent_message_count": -2}, "recent_message_count"),
            ({"max_summary_tokens": 0}, "max_summary_tokens"),
        ],
    )
    def test_that_make_no_sense_are_refused(self, options, said):
        with pytest.raises(ValueError, match=said):
            HistoryTrimmer(**options)

    @pytest.mark.parametrize(
        ("options", "refusal"),
        [
            ({"max_tokens": "8k"}, "max_tokens must be a number of at least 1, got '8k'"),
            ({"max_tokens": float("inf")}, "max_tokens must be a number of at least 1, got inf"),
            ({"max_tokens": True}, "max_tokens must be a number of at least 1, got True"),
            ({"recent_message_count": None}, "recent_message_count must be a number"),
            ({"wait": None}, "wait must be a number of at least 0, got None"),
            ({"wait": float("nan")}, "wait must be a number of at least 0, got nan"),
            ({"temperature": "hot"}, "temperature must be a number"),
            ({"products": "Aero 5"}, r"list of names such as \[.*\], got 'Aero 5'"),
            ({"products": None}, "list of names .* got None"),
            ({"products": ["Aero 5", 5]}, "list of names .* got 5"),
            ({"embed": "minilm"}, "embed must be a function of texts, got 'minilm'"),
        ],
    )
    def test_of_another_type_are_refused_at_once(self, options, refusal):
        with pytest.raises(TypeError, match=refusal):
            HistoryTrimmer(**options)

    def test_a_share_of_a_window_is_a_number_of_tokens_too(self):
        trimmed = HistoryTrimmer(max_tokens=0.6 * 1001).trim(conversation(20))

        assert trimmed.was_trimmed

    @pytest.mark.parametrize("messages", [None, 5])
    def test_without_messages_what_is_wanted_is_said(self, messages):
        with pytest.raises(TypeError, match="a list of messages, got"):
            HistoryTrimmer().trim(messages)

    @pytest.mark.parametrize("turns", [1, 20])  # what fits is given back, too
    def test_messages_may_come_one_by_one(self, turns):
        messages = conversation(turns)

        trimmed = HistoryTrimmer(max_tokens=600).trim(message for message in messages)

        assert trimmed.messages == HistoryTrimmer(max_tokens=600).trim(messages).messages != []

    def test_products_are_kept_in_any_spelling(self):
        messages = [user("Is the eero mini fast?"), assistant("Yes [1]."), *conversation(4)]

        trimmed = HistoryTrimmer(max_history_turns=1, products=["eero mini"]).trim(messages)

        assert contains_name(trimmed.messages[0]["content"], "eero mini")

    def test_a_client_is_told_to_be_impatient(self):
        class Patient(Client):
            timeout = 600.0

            def with_options(self, **options):
                self.options = options
                return self

        client = Patient("Vega 1 weighs 101 g [1].")

        HistoryTrimmer(client=client, model="m", max_history_turns=1).trim(conversation(2))

        assert client.options == {"max_retries": 0, "timeout": 60.0}

    def test_a_model_that_wants_other_words_gets_them_next_time(self):
        class Picky(Client):
            def create(self, **options):
                self.options = options
                if "max_tokens" in options:
                    raise ValueError("Use max_completion_tokens instead of max_tokens.")
                if "temperature" in options:
                    raise ValueError("temperature is not supported.")
                return super().create(model=options["model"], messages=options["messages"])

        client = Picky("Fine.")
        trimmer = HistoryTrimmer(client=client, model="m", max_tokens=1200)
        messages = [SYSTEM]

        for at in range(0, 240, 2):
            messages += conversation(120)[at : at + 2]
            trimmer.trim(messages)

        assert set(client.options) == {"model", "messages", "max_completion_tokens"}


def test_importing_loads_nothing_heavy():
    code = "import rag, sys; rag.HistoryTrimmer; print(sorted(sys.modules))"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    for heavy in ("torch", "chromadb", "flask", "openai", "tiktoken", "sqlalchemy"):
        assert f"'{heavy}'" not in loaded
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        __import__("rag").Nothing  # noqa: B018


# ── Properties ───────────────────────────────────────────────────────────────────────────────

NAMES = ["Vega 3", "Vega 3 Pro", "AX-5400", "iLamp 2", "Nova Link 7E", "WH-1000XM4"]
FORMS = [
    "The {n} weighs {v} g [{c}].", "The {n} costs {v} euros. [{c}]", "- {n}: {v} hours 【{c}】\n",
    "\n| Product | Range |\n|---|---|\n| {n} | {v} m [{c}] |\n\n", "{v} W [{c}][{d}].",
    "It is not rated for {v} cycles [{c}, {d}].", "The {n} has {v} ports [{c}-{e}].",
    "The {n} is not waterproof [{c}], and it charges in {v} minutes [{d}].", "Ask again \ud83d.",
    "`code[{c}]` runs on {n}.", "See arr[{c}] and [{c}](https://x.y).",
]  # fmt: skip


@st.composite
def histories(draw):
    chance = random.Random(draw(st.integers(0, 10_000)))
    messages = [SYSTEM] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(3, 25))):
        said = []
        for _ in range(chance.randint(1, 5)):
            c = chance.randint(1, 40)
            said.append(
                chance.choice(FORMS).format(
                    n=chance.choice(NAMES), v=chance.randint(2, 999), c=c, d=c + 1, e=c + 3
                )
            )
        messages += [user(f"What about the {chance.choice(NAMES)}?"), assistant(" ".join(said))]
    return messages


def hostile(seed):
    """A model that drops, moves, invents and alters whatever it is shown."""

    def reply(prompt):
        chance = random.Random(f"{seed}{len(prompt)}")
        words = prompt.split(" ")
        for _ in range(len(words) // 4):
            at = chance.randrange(len(words))
            words[at] = chance.choice(["[99]", "[1]", "Vega 33", "", words[at][::-1], "|", "\n- "])
        chance.shuffle(sentences := " ".join(words).split("."))
        return ".".join(sentences)

    return reply


class TestAnyHistory:
    @settings(max_examples=60, deadline=None)
    @given(histories(), st.integers(0, 99), st.integers(400, 2500), st.booleans())
    def test_keeps_all_invents_nothing_and_fits(self, messages, seed, budget, with_model):
        options = {"client": Client(hostile(seed)), "model": "m"} if with_model else {}
        trimmer = HistoryTrimmer(max_tokens=budget, products=NAMES, **options)
        before = copy.deepcopy(messages)

        for end in range(max(1, len(messages) - 4), len(messages) + 1):
            trimmed = trimmer.trim(messages[:end])

        after = "\n\n".join(m["content"] for m in trimmed.messages)
        report = trimmed.report
        assert size(trimmed.messages) <= budget
        given = {n for m in messages for n in cited_numbers(canonical(m["content"]))}
        found = numbers_in(after)
        assert found <= given
        assert report is None or found | {*report.recallable_citations} >= given
        assert {m["role"] for m in trimmed.messages[1:]} <= {"user", "assistant"}
        for number in sorted(given - found):
            assert is_recalled(trimmer, messages, number)
        assert messages == before


def test_a_hanging_model_holds_up_no_other_conversation():
    asked, go_on = threading.Event(), threading.Event()

    class Hanging(Client):
        def create(self, **options):
            asked.set()
            go_on.wait(20)
            return super().create(**options)

    trimmer = HistoryTrimmer(client=Hanging(""), model="m", max_history_turns=2)
    stuck = threading.Thread(target=trimmer.trim, args=([SYSTEM, *conversation(5)],))
    stuck.start()
    asked.wait(20)

    other = trimmer.trim([SYSTEM, *conversation(1, start=50)])

    assert stuck.is_alive()
    assert len(other.messages) == 3
    go_on.set()
    stuck.join()


def test_two_threads_with_one_conversation_are_sent_the_same():
    together = threading.Barrier(2)
    trimmer = HistoryTrimmer(max_tokens=600)
    messages = [SYSTEM, *conversation(20), user("How heavy is the Vega 3?")]
    trimmer.trim(messages[:30])
    sent = []

    def send():
        together.wait(20)
        sent.append(trimmer.trim(messages).messages)

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(sent) == 2
    assert set(cited_numbers(str(sent[0]))) == set(cited_numbers(str(sent[1])))


@pytest.mark.parametrize("window", [600, 800, 1000, 1200])
def test_a_japanese_talk_fits(window):
    messages = []
    for n in range(1, 61):
        messages += [
            {"role": "user", "content": f"ロット{n}の保証期間を教えてください。"},
            {"role": "assistant", "content": f"{n}か月です【{n}】。"},
        ]
    messages.append({"role": "user", "content": "保証期間を教えてください。"})

    trimmed = HistoryTrimmer(max_tokens=window).trim(messages)

    assert trimmed.was_trimmed
    assert sum(count_tokens(each["content"]) + 4 for each in trimmed.messages) + 3 <= window
