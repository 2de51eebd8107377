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
from rag.summaries.cover import Cover
from rag.summaries.facts import Facts, Said, facts_of
from rag.summaries.kept_names import KeptNames
from rag.summaries.lines import Line
from rag.summaries.pool import LINES_OF_MANY, LINES_PER_NUMBER, MANY_NUMBERS, Pool
from rag.summaries.snapshot import begins_with, common, content_of, snapshot
from rag.text.names import Lexicon
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
    """The work of each of 1000 turns."""
    trimmer = HistoryTrimmer(max_tokens=4096)
    messages = []
    done = []
    for number in range(1000):
        messages += turn(number)
        done.append(work_of(partial(trimmer.trim, messages)))
    return done


class TestTheWorkOfATurn:
    def test_reads_only_the_new_messages(self, work):
        assert all(each["message_facts"] == each["message_tokens"] == 2 for each in work)
        assert all(each["statements"] == 2 for each in work)

    def test_is_as_much_at_the_end_as_near_the_beginning(self, work):
        early = sorted(each.total() for each in work[100:200])
        late = sorted(each.total() for each in work[900:])

        assert late[50] <= 1.2 * early[50]
        assert late[-1] <= 1.5 * early[-1]

    def test_that_summarises_counts_and_searches_only_what_is_new(self, work):
        summarising = [each for each in work[500:] if each["compose"]]

        assert len(summarising) > 5
        assert all(each["count_with"] < 120 for each in summarising)
        assert all(each["_matches"] < 150 for each in summarising)


class TestATranscriptChangedInPlace:
    @pytest.mark.parametrize("at", [3, 1995])
    def test_is_read_anew_from_there(self, at):
        trimmer = HistoryTrimmer(max_tokens=4096)
        messages = [message for number in range(1000) for message in turn(number)]
        trimmer.trim(messages)

        messages[at]["content"] = "The Nova 5 is free of charge [77]."
        text = "\n".join(m["content"] for m in trimmer.trim(messages).messages)

        assert 77 in cited_numbers(text)

    def test_is_noticed_where_only_a_call_of_a_tool_grew(self):
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages = [*turn(1), {"role": "assistant", "content": None, "tool_calls": [call]}]
        before = [snapshot(message) for message in messages]

        call["function"]["arguments"] = "x" * 1000

        assert common(messages, before) == 2

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
        assert common(messages, before) == next(changed, len(messages))

    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_is_noticed_in_what_was_summarised_by_its_content(self, data):
        contents = st.one_of(st.none(), st.text(max_size=3), st.lists(st.text(max_size=2)))
        message = st.fixed_dictionaries({"role": st.just("user")}, optional={"content": contents})
        messages = data.draw(st.lists(message, min_size=1, max_size=8))
        told = [content_of(snapshot(each)) for each in messages]

        assert begins_with([*messages, "no message"], told)
        data.draw(st.sampled_from(messages))["content"] = "another"

        assert not begins_with(messages, told)


def lines_of(*sentences):
    facts = facts_of([Said("assistant", sentence) for sentence in sentences])
    return [Line(fact, count_tokens) for fact in facts.facts]


class TestTheCover:
    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.tuples(st.sets(st.integers(1, 9), min_size=1, max_size=3), st.booleans())))
    def test_is_that_of_all_lines_looked_at_in_order(self, said):
        cover, lines = Cover(), {}
        for age, (numbers, stays) in enumerate(said):
            marks = "".join(f"[{number}]" for number in sorted(numbers))
            (line,) = lines_of(f"Statement {age} says so {marks}.")
            cover.add(age, line)
            if stays:
                lines[age] = line
            else:
                cover.remove(age, line)

        cited, chosen = set(), []
        for age in sorted(lines, key=lambda age: (lines[age].rank, -age)):
            if not cited.issuperset(lines[age].numbers):
                cited.update(lines[age].numbers)
                chosen.append(age)
        assert cover.ages() == sorted(chosen)


class TestThePool:
    def test_keeps_a_bounded_number_of_statements(self):
        pool = Pool()
        pool.add(Facts(), lines_of(*(f"The Vega costs {n} euros [1]." for n in range(10, 99))))

        assert len(pool.lines) == LINES_PER_NUMBER

    def test_keeps_fewer_where_there_are_many_numbers(self):
        pool = Pool()
        many = range(1, MANY_NUMBERS + 50)
        for round_ in range(9):
            said = [f"The Vega {n} costs {round_ + 10} euros [{n}]." for n in many]
            pool.add(Facts(), lines_of(*said))

        assert all(len(ages) == LINES_OF_MANY for ages in pool.numbers.values())

    def test_forgets_statements_of_one_wording(self):
        pool = Pool()
        pairs = (f"It costs {n} euros [1]. It costs {n} euros [2]." for n in range(10, 60))
        pool.add(Facts(), lines_of(*pairs))

        assert len(pool.lines) == 2 * LINES_PER_NUMBER


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["Aero", "Aero 5", "5 Pro", "Aero 5 Pro", "Pro", "X-1"]), unique=True),
    st.lists(st.sampled_from(["Aero 5 Pro\n", "Aero 5, ", "Pro X-1\n", "Aero. ", "5 Pro "])),
)
def test_names_learned_one_by_one_are_found_like_names_known_at_once(names, texts):
    text = "".join(texts)
    learned = KeptNames()

    for many in range(len(names) + 1):
        learned.learn(names[:many])
        learned.kept(text)

    assert learned.kept(text) == Lexicon(names).kept(text)
