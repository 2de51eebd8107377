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
from rag.records import ImportedMessage
from rag.sessions.store import SqlConversationStore
from rag.summaries.compact import Compactor
from rag.summaries.summarise import Room
from rag.tokens import count_tokens
from tests.conftest import DATA
from tests.fakes import ScriptedModel

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
    messages = []
    for number, answer in enumerate(answers, start=1):
        subject = re.search(r"[A-Z]\w+ [A-Z]?\d+|Orla", answer)
        asked = f"What about the {subject[0]}?" if subject else "What else?"
        said = answer.replace("{n}", str(number)).replace("[n]", f"[{number}]")
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    return messages


def padded(messages):
    """Turns enough for the first ones to fall out of any window."""
    talk = "That depends on many things, and there is a lot to be said for either side of it. " * 6
    small = [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": talk}]
    return [*messages, *small * 30]


def lying(lies):
    """A model that writes the lies: as a summary, as JSON, and as what the user said."""
    thread = [{"turns": [turn], "text": lie} for turn, lie in enumerate(lies, start=1)]
    bare = [entry | {"text": re.sub(r" ?\[\d+\]", "", entry["text"])} for entry in thread]
    as_json = json.dumps({"keep": lies, "user": [*thread, *bare], "summary": lies})
    return ["\n".join(lies), as_json, f"```json\n{as_json}\n```"]


def library(messages, tokens, reply=None):
    """The summary that the library sends, and its report."""
    choice = SimpleNamespace(message=SimpleNamespace(content=reply))
    answer = SimpleNamespace(choices=[choice])
    completions = SimpleNamespace(create=lambda **options: answer)
    client = SimpleNamespace(chat=SimpleNamespace(completions=completions))
    options = {"client": client, "model": "liar"} if reply is not None else {}
    trimmed = HistoryTrimmer(max_tokens=tokens, **options).trim(padded(messages))
    return trimmed.messages[0]["content"], trimmed.report


def application(engine, messages, tokens, reply=None):
    """The summary that the application stores, and its report."""
    session = SqlConversationStore(engine).create("ada")
    session.append([ImportedMessage(m["role"], m["content"]) for m in padded(messages)], [])
    model = ScriptedModel(lambda request: reply) if reply is not None else None
    half = tokens // 2
    room = Room(half, int(0.9 * half), half // 2, half // 2, int(0.8 * half), 5, 20, 10)
    made = Compactor(model, count_tokens).compact(session, room, at_once=False, force=True)
    return made.text, made.report


def beside_numbers(text):
    """The lines with a number that are no entry of an index."""
    index = re.compile(r"[^\[\]]*: (?:\[[\d–]+\])+[^\[\]]*")
    return [line for line in text.split("\n") if cited_numbers(line) and not index.fullmatch(line)]


def assert_no_lie(text, truths, lies):
    assert set(beside_numbers(text)) <= set(truths)
    for truth, lie in zip(truths, lies, strict=True):
        bare = re.sub(r" ?\[\d+\]|\.$", "", lie)
        assert bare not in text.replace(truth, "")


def numbered(templates):
    return [text.replace("{n}", str(n)) for n, text in enumerate(templates, start=1)]


class TestALyingModel:
    @pytest.mark.parametrize("tokens", [1800, 4000])
    @pytest.mark.parametrize("reply", [0, 1, 2], ids=["a summary", "JSON", "fenced JSON"])
    @pytest.mark.parametrize("source", ["own", "shared"])
    def test_is_never_quoted(self, engine, source, reply, tokens):
        if source == "own":
            truths, lies = zip(*TRUTHS, strict=True)
        else:
            given = lines_of("summary_lies.jsonl")
            truths, lies = zip(*((g["truth"], g["lie"]) for g in given), strict=True)
        truths, lies = numbered(truths), numbered(lies)
        messages = conversation(truths)
        said = lying(lies)[reply]

        for text, report in (
            library(messages, tokens, said),
            application(engine, messages, tokens, said),
        ):
            assert_no_lie(text, truths, lies)
            assert report.citations_kept == report.citations_required == len(truths)

    @settings(
        max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.one_of(
            st.text(max_size=300),
            st.builds(
                lambda keep, text, turns: json.dumps(
                    {"keep": keep, "user": [*turns, text, {"turns": turns, "text": text}]}
                ),
                st.lists(st.one_of(st.integers(-3, 9), st.text(max_size=3)), max_size=5),
                st.one_of(
                    st.text(max_size=60),
                    st.sampled_from(
                        ["El molino es seguro [1].", "The Orla 7 is unsafe.", "[1][2][3]", "-15 °C"]
                    ),
                ),
                st.lists(st.integers(-1, 9), max_size=3),
            ),
            st.just("x" * 1_000_000),
            st.just("[1] " * 4000),
            st.just("[" * 100_000),
        )
    )
    def test_of_any_kind_adds_no_line_beside_a_number(self, engine, reply):
        truths = numbered(truth for truth, _ in TRUTHS)
        messages = conversation(truths)

        for text, report in (
            library(messages, 1800, reply),
            application(engine, messages, 1800, reply),
        ):
            assert set(beside_numbers(text)) <= set(truths)
            assert report.citations_kept == len(truths)
            assert report.attempts <= 1


class TestAClaim:
    @pytest.mark.parametrize("tokens", [200, 300, 400, 600, 900, 1300, 1800, 4000])
    @pytest.mark.parametrize("source", ["own", "shared"])
    def test_is_quoted_whole_or_listed_at_every_budget(self, engine, source, tokens):
        if source == "own":
            claims = CLAIMS
        else:
            given = lines_of("shortenings.jsonl")
            claims = [(g["claim"], g["must_stay"]) for g in given]
        messages = conversation(claim for claim, _ in claims)

        for text, report in (library(messages, tokens), application(engine, messages, tokens)):
            for line in beside_numbers(text):
                for number in cited_numbers(line):
                    assert claims[number - 1][1] in line
            said = set(cited_numbers(text)) | set(report.archived_citations)
            assert said == set(range(1, len(claims) + 1))
            assert set(report.stated_citations) == {
                number for line in beside_numbers(text) for number in cited_numbers(line)
            }


class TestOneNumber:
    def test_keeps_as_many_of_its_claims_as_there_is_room_for(self):
        claims = [f"Rule {n} of the mill binds {n * 3} people [1]." for n in range(1, 41)]
        messages = conversation(["The Orla 7 mill is blue [9].".replace("[9]", "[2]"), *claims])

        text, _ = library(messages, 4000)

        assert len([line for line in text.split("\n") if "Rule" in line]) >= 35

    def test_does_not_make_one_claim_of_two_that_differ_in_a_sign(self):
        said = [
            "It starts at −15 °C [1].",
            "It starts at 15 °C [1].",
            "< 3 bar [1].",
            "> 3 bar [1].",
        ]
        messages = conversation([f"The Orla 7: {claim}" for claim in said])

        text, _ = library(messages, 4000)

        assert all(claim in text for claim in said)

    def test_of_the_same_claim_as_another_is_kept_beside_it(self):
        messages = conversation(["The Orla 7 mill is blue [1].", "The Orla 7 mill is blue [2]."])

        text, report = library(messages, 1800)

        assert "The Orla 7 mill is blue [1]." in text
        assert "The Orla 7 mill is blue [2]." in text
        assert report.stated_citations == (1, 2)


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
def test_any_script_is_quoted_word_for_word(engine, claim):
    messages = conversation([claim])

    for text, _ in (library(messages, 1800), application(engine, messages, 1800)):
        assert claim in text.split("\n")
