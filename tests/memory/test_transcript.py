"""What a trimmer does for one turn does not grow with the conversation: counted, not timed."""

import copy
import cProfile
from collections import Counter
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag import HistoryTrimmer
from rag.citations.markers import cited_numbers
from rag.language.names import Lexicon
from rag.memory.transcript import Transcript, snapshot
from rag.tokens import count_tokens

SOURCES = 60


def turn(number):
    """A question and an answer about one of 60 sources; no two answers are alike."""
    source = 1 + number * 7 % SOURCES
    return [
        {"role": "user", "content": f"And what does the Vega {source} cost in region {number}?"},
        {
            "role": "assistant",
            "content": f"In region {number} the Vega {source} costs {100 + number} euros "
            f"[{source}]. It weighs {source} kg, so two people carry it [{source}].",
        },
    ]


def work_of(call):
    """How often each function of this package was called."""
    profile = cProfile.Profile()
    profile.runcall(call)
    counted = Counter()
    for entry in profile.getstats():
        code = entry.code
        if not isinstance(code, str) and "/rag/" in code.co_filename:
            counted[code.co_name] += entry.callcount
    return counted


@pytest.fixture(scope="module")
def work():
    """The work of each of 250 turns."""
    trimmer = HistoryTrimmer(max_tokens=4096)
    messages = []
    done = []
    for number in range(250):
        messages += turn(number)
        done.append(work_of(partial(trimmer.trim, messages)))
    return done


class TestTheWorkOfATurn:
    def test_reads_only_the_new_messages(self, work):
        assert all(each["read_paragraphs"] == 2 for each in work)
        assert all(each["message_tokens"] == 2 for each in work)

    def test_is_as_much_at_the_end_as_near_the_beginning(self, work):
        early = sorted(each.total() for each in work[90:140])
        late = sorted(each.total() for each in work[200:])

        assert late[25] <= 1.2 * early[25]
        assert late[-1] <= 1.5 * early[-1]

    def test_that_summarises_counts_and_searches_only_what_is_new(self, work):
        summarising = [each for each in work[100:] if each["summarise"]]

        assert len(summarising) > 5
        assert all(each["read_paragraphs"] == 2 for each in summarising)
        assert all(each["_matches"] < 30 for each in summarising)


def alike(messages, known):
    seen = Transcript(count_tokens, lexicon=Lexicon(()))
    seen.messages = known
    return seen.common(messages)


class TestATranscriptChangedInPlace:
    def test_is_read_anew_from_there(self):
        trimmer = HistoryTrimmer(max_tokens=4096)
        messages = [message for number in range(300) for message in turn(number)]
        trimmer.trim(messages)

        for at, number in ((595, 77), (3, 78)):
            messages[at]["content"] = f"The Nova 5 is free of charge [{number}]."
            asked = [*messages, {"role": "user", "content": "Is the Nova 5 free of charge?"}]
            text = "\n".join(m["content"] for m in trimmer.trim(asked).messages)

            assert number in cited_numbers(text)

    def test_is_noticed_where_only_a_call_of_a_tool_grew(self):
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages = [*turn(1), {"role": "assistant", "content": None, "tool_calls": [call]}]
        before = [snapshot(message) for message in messages]

        call["function"]["arguments"] = "x" * 1000

        assert alike(messages, before) == 2

    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_is_known_up_to_the_change(self, data):
        contents = st.one_of(st.none(), st.text(max_size=3), st.lists(st.text(max_size=2)))
        optional = {"content": contents, "name": st.text(max_size=2)}
        message = st.fixed_dictionaries({"role": st.sampled_from("ab")}, optional=optional)
        messages = data.draw(st.lists(message, max_size=8))
        before = [snapshot(each) for each in messages]
        truth = copy.deepcopy(messages)

        for each in messages:
            if data.draw(st.integers(0, 5)) == 0:
                each[data.draw(st.sampled_from(["role", "content", "name"]))] = "c"

        changed = (i for i, (a, b) in enumerate(zip(truth, messages, strict=True)) if a != b)
        assert alike(messages, before) == next(changed, len(messages))
