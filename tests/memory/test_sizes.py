"""However long and whatever its shape, a history fits, is read in bounded work, and is found again."""

# ruff: noqa: E501

import time

import pytest

from rag import HistoryTrimmer
from tests.memory.test_trimmer import SYSTEM, assistant, numbers_in, size, user

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000
FILLER = "The quiet crate of the harbour master waits beside an old pier until the tide turns. "
SECRET = "The spare key of the Orla mill hangs behind the blue door [7]."
ASKED = "Where does the spare key of the Orla mill hang?"
SPOKEN = {
    "sentences": (FILLER, SECRET, ASKED),
    "one long paragraph without stops": (
        "harbour crate pier tide quiet ",
        SECRET,
        ASKED,
    ),
    "paragraphs": (f"{FILLER}\n\n", SECRET, ASKED),
    "list": (f"- {FILLER}\n", f"- {SECRET}\n", ASKED),
    "table": (f"| crate | {FILLER} |\n", f"| key | {SECRET} |\n", ASKED),
    "headings": (f"## Crate\n\n{FILLER}\n\n", f"\n\n## Key\n\n{SECRET}\n\n", ASKED),
    "CJK": ("港の古い箱は静かに潮を待っている。", "予備の鍵は青い扉の裏にある【7】。", "予備の鍵はどこにありますか？"),
    "RTL": ("الصندوق القديم ينتظر في الميناء. ", "المفتاح الاحتياطي خلف الباب الأزرق [7]. ", "أين المفتاح الاحتياطي؟"),
}  # fmt: skip
SECONDS = 20  # of CPU, for what takes two or three on a quiet machine


def filled(filler, secret, length):
    """The secret in the middle of a message of about that many bytes."""
    half = length // (2 * len(filler.encode())) + 1
    return filler * half + secret + filler * half


@pytest.mark.parametrize(("filler", "secret", "asked"), SPOKEN.values(), ids=SPOKEN)
def test_up_to_a_megabyte_is_read_and_what_it_says_is_found(filler, secret, asked):
    is_whole = filler in (SPOKEN["CJK"][0], SPOKEN["one long paragraph without stops"][0])
    long = filled(filler, secret, MEGABYTE if is_whole else MEGABYTE // 10)
    messages = [
        SYSTEM,
        user("Read this."),
        assistant(long),
        user("x"),
        assistant("Yes."),
        user(asked),
    ]
    began = time.process_time()

    sent = HistoryTrimmer(max_tokens=4000).trim(messages).messages

    assert time.process_time() - began < SECONDS
    assert size(sent) <= 4000
    assert 7 in numbers_in("\n".join(str(each["content"]) for each in sent))
    said = secret.split("[")[0].split("【")[0].split("\n")[-1].removeprefix("| key |")
    assert said.strip("- ") in sent[-1]["content"]


def test_a_lot_of_code_and_data_fits_and_cites_nothing():
    code = "```python\n" + "x = rows[77]\n" * (MEGABYTE // 4 // 13) + "```"
    data = '{"ids": [' + ", ".join(["77"] * (MEGABYTE // 16)) + "]}"
    messages = [
        SYSTEM,
        user("x"),
        assistant(code),
        user("y"),
        assistant(data),
        user("Which row is it?"),
    ]
    began = time.process_time()

    sent = HistoryTrimmer(max_tokens=4000).trim(messages).messages

    assert time.process_time() - began < SECONDS / 4
    assert size(sent) <= 4000
    assert 77 not in numbers_in("\n".join(str(each["content"]) for each in sent))


def test_two_thousand_turns_fit_and_the_first_is_found():
    said = [f"It is crate {number} of the pier [{number}]. {FILLER}" for number in range(8, 2008)]
    messages = [SYSTEM, user("Where is the key?"), assistant(SECRET)]
    for text in said:
        messages += [user("And the next?"), assistant(text)]
    trimmer = HistoryTrimmer(max_tokens=4000)

    trimmed = trimmer.trim([*messages, user(ASKED)])
    began = time.process_time()
    again = trimmer.trim([*messages, user(ASKED), assistant("Behind it [7]."), user("Which door?")])

    assert time.process_time() - began < 2  # what was read is not read again
    assert size(trimmed.messages) <= 4000 >= size(again.messages)
    assert SECRET in trimmed.messages[-1]["content"]
    report = trimmed.report
    kept = {*report.stated_citations, *report.recallable_citations, *report.listed_citations}
    assert kept >= set(range(7, 1900))
