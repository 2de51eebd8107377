"""A lying model never gets a word beside a number, and no claim is ever shortened (C3).

Our own cases come first; the files of `shared/attacks`, where they are there, say the same of more.
"""

import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag import HistoryTrimmer
from rag.citations.markers import cited_numbers
from rag.memory.conversation import ConversationMemory
from rag.memory.history import all_phrases
from rag.memory.summariser import ModelReply, Summariser
from rag.memory.summary import Room, spelled_out
from rag.records import ImportedMessage
from rag.sessions.store import SqlConversationStore
from rag.tokens import count_tokens
from tests.conftest import DATA

ENGLISH = all_phrases()["en"]
ATTACKS = DATA.parent / "attacks"
TRUTHS = [
    ("The Orla 7 mill grinds wet grain [{n}].", "The Orla 7 mill never grinds wet grain [{n}]."),
    ("The Orla 8 mill opens at 6 bar or more [{n}].", "The Orla 8 mill opens at 6 bar [{n}]."),
    ("The Orla 9 mill is not quite silent [{n}].", "The Orla 9 mill is not silent [{n}]."),
    ("Unless it rains, the Orla 10 mill runs [{n}].", "The Orla 10 mill runs [{n}]."),
    ("Die Orla 11 startet ab −15 °C [{n}].", "Die Orla 11 startet ab 15 °C [{n}]."),
]
CLAIMS = [
    ("Is the Orla 7 mill safe for children? No [{n}].", "No"),
    ("The Orla 8 mill is quiet (at night only) [{n}].", "at night only"),
    ("The Orla 9 mill is cheap. That was wrong, says the list [{n}].", "wrong"),
    ("The Orla 10 mill suits rye [{n}], but only when dry.", "only when dry"),
    ("According to the maker, the Orla 11 mill lasts [{n}].", "According to the maker"),
]


def lines_of(name):
    path = ATTACKS / name
    if not path.is_file():
        pytest.skip(f"there are no attacks at {path}")
    return [json.loads(line) for line in path.read_text().splitlines()]


def conversation(answers):
    """Each answer to a question about its thing, and then turns enough for all to fall out."""
    messages = []
    for number, answer in enumerate(answers, start=1):
        subject = re.search(r"[A-Z]\w+ [A-Z]?\d+", answer)
        said = answer.replace("{n}", str(number))
        asked = f"What about the {subject[0]}?" if subject else "What else?"
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    talk = "That depends on many things, and there is a lot to be said for either side of it. " * 6
    small = [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": talk}]
    return [*messages, *small * 30]


def library(messages, tokens, question, reply=None):
    """All that the library sends for a question."""
    answer = SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=reply))])
    completions = SimpleNamespace(create=lambda **options: answer)
    client = SimpleNamespace(chat=SimpleNamespace(completions=completions))
    options = {"client": client, "model": "liar"} if reply is not None else {}
    asked = [*messages, {"role": "user", "content": question}]
    trimmed = HistoryTrimmer(max_tokens=tokens, **options).trim(asked)
    return "\n".join(message["content"] for message in trimmed.messages).removesuffix(question)


def application(engine, messages, tokens, question, reply=None):
    """The summary that the application stores, and what it recalls."""
    session = SqlConversationStore(engine).create("ada")
    session.append([ImportedMessage(m["role"], m["content"]) for m in messages], [])
    liar = Summariser(lambda instructions, text, hang_up: ModelReply(reply), "liar", count_tokens)
    remembered = ConversationMemory(count_tokens, summariser=None if reply is None else liar)
    end = len(messages) - 10
    made = remembered.compact(
        session, lambda past, last: (end, Room(tokens, tokens)), at_once=False
    )
    with remembered.recalled(session, question, before=end, room=tokens) as shown:
        return f"{made.text}\n{shown.text()}"


def both(engine, messages, tokens, question, reply=None):
    yield library(messages, tokens, question, reply)
    yield application(engine, messages, tokens, question, reply)


def beside_numbers(text):
    """The lines with a number that do not list all of them."""
    lines = text.replace(ENGLISH.earlier, "").split("\n")
    listed = f"{ENGLISH.sources}: "
    return [line for line in lines if cited_numbers(line) and not line.startswith(listed)]


def said_in(line):
    return re.sub(r"^(?:User: |Assistant: |- (?:[^→\n]* → )?)", "", line)


def numbered(templates):
    return [text.replace("{n}", str(n)) for n, text in enumerate(templates, start=1)]


class TestALyingModel:
    @pytest.mark.parametrize("tokens", [1800, 4000])
    @pytest.mark.parametrize("source", ["own", "shared"])
    def test_is_never_quoted(self, engine, source, tokens):
        if source == "own":
            truths, lies = zip(*TRUTHS, strict=True)
        else:
            given = lines_of("summary_lies.jsonl")
            truths, lies = zip(*((g["truth"], g["lie"]) for g in given), strict=True)
        truths, lies = numbered(truths), numbered(lies)
        bare = [re.sub(r" ?\[\d+\]", "", lie) for lie in lies]
        messages = conversation(truths)

        for reply in ("\n".join(lies), "\n".join(bare), json.dumps({"keep": lies})):
            for text in both(engine, messages, tokens, "What about all of them?", reply):
                assert {said_in(line) for line in beside_numbers(text)} <= set(truths)
                shown = text
                for truth in truths:
                    shown = shown.replace(truth, "")
                assert not any(lie.rstrip(".") in shown for lie in bare if re.search(r"\d", lie))
                assert set(cited_numbers(spelled_out(text))) == set(range(1, len(truths) + 1))

    @settings(
        max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.one_of(
            st.text(max_size=300),
            st.sampled_from(
                ["El molino es seguro [1].", "[1][2][3]", "-15 °C", "It weighs ⁷.", "【1】 is so."]
            ),
            st.just("x" * 1_000_000),
            st.just("[1] " * 4000),
            st.just("[" * 100_000),
        )
    )
    def test_of_any_kind_adds_no_line_beside_a_number(self, engine, reply):
        truths = numbered(truth for truth, _ in TRUTHS)

        for text in both(engine, conversation(truths), 1800, "What of the Orla 7?", reply):
            assert {said_in(line) for line in beside_numbers(text)} <= set(truths)


class TestAClaim:
    @pytest.mark.parametrize("tokens", [300, 400, 600, 900, 1800, 4000])
    @pytest.mark.parametrize("source", ["own", "shared"])
    def test_stands_whole_wherever_it_is_shown(self, engine, source, tokens):
        if source == "own":
            claims = CLAIMS
        else:
            given = lines_of("shortenings.jsonl")
            claims = [(g["claim"], g["must_stay"]) for g in given]
        messages = conversation(claim for claim, _ in claims)

        for question in ("What about mills and pumps?", "What does [1] say, and [3]?"):
            for text in both(engine, messages, tokens, question):
                for line in beside_numbers(text):
                    for number in cited_numbers(line):
                        assert claims[number - 1][1] in line
                assert set(cited_numbers(spelled_out(text))) <= set(range(1, len(claims) + 1))

    def test_comes_back_by_its_number(self, engine):
        messages = conversation(claim for claim, _ in CLAIMS)

        for number, (claim, _) in enumerate(CLAIMS, start=1):
            for text in both(engine, messages, 1800, f"And [{number}]?"):
                assert claim.replace("{n}", str(number)) in text

    @pytest.mark.parametrize("form", ["same", "sign"])
    def test_stands_beside_another_that_is_nearly_the_same(self, engine, form):
        said = {
            "same": ["The Orla 7 mill is blue [1].", "The Orla 7 mill is blue [2]."],
            "sign": ["The Orla 7 starts at −15 °C [1].", "The Orla 7 starts at 15 °C [1]."],
        }[form]

        for text in both(engine, conversation(said), 1800, "What of the Orla 7?"):
            assert all(claim in text for claim in said)


@pytest.mark.parametrize(
    "claim",
    [
        "Runs on .NET 8 and C++ 20 [1].",
        "המכונה שוקלת 12 ק״ג [1].",
        "Zorb泵待机时耗电41.37 W [1]。",
        "The Orla 7 🌾 mill works 👍 [1].",
        "Die Orla 7 läuft ab −15 °C [1].",
    ],
)
def test_any_script_is_shown_word_for_word(engine, claim):
    for text in both(engine, conversation([claim]), 1800, "What does [1] say?"):
        assert claim in text


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("It is small (e.g[1848]. of that year).", set()),
        ('{"ids": [1, 2, 3], "rows": [[4, 5], [6]]}', set()),
        ("[1, 2, 3]", set()),
        ('{"answer": "It weighs 3 kg [7].", "sources": ["Manual"]}', {7}),
        ("```json\n[1, 2]\n```\nSo it is [7].", {7}),
    ],
)
def test_what_is_no_citation_becomes_none(said, numbers):
    text = library(conversation([said]), 1800, "What else?")

    assert set(cited_numbers(spelled_out(text))) == numbers
    assert said in text


@pytest.mark.slow
def test_of_thousands_of_turns_the_first_is_brought_back(engine):
    messages = conversation(["The Orla 7 mill grinds 41 kg an hour [1]."])
    messages += conversation([f"The Vega {n} pump lifts {n} m [{n}]." for n in range(2, 2_000)])

    text = library(messages, 4_000, "How much does the Orla 7 mill grind?")

    assert "grinds 41 kg an hour [1]" in text
    assert "[1]–[1999]" in text


def test_later_and_earlier_values_come_together_the_newest_first(engine):
    said = [
        "The Orla 7 mill costs 410 euro [1].",
        "The Vega 3 pump costs 90 euro [2].",
        "The Orla 7 mill costs 455 euro since May [3].",
        "The Vega 4 pump costs 95 euro [4].",
    ]
    for text in both(engine, conversation(said), 900, "What does the Orla 7 mill cost?"):
        assert text.index("455 euro since May [3]") < text.index("410 euro [1]")
