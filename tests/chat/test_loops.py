"""A text that only repeats itself is seen; one that is merely regular is not."""

import pytest

from rag.chat.draft import end_before_loop

SENTENCE = "The pump needs a new filter every 40 hours of use [1]."


@pytest.mark.parametrize(
    "unit",
    [f" {SENTENCE}", f"\n- {SENTENCE}", " very", "\n| Aero 5 | 120 g | in stock now |"],
)
@pytest.mark.parametrize("tail", ["", " The pump needs"])
def test_what_is_repeated_stays_once(unit, tail):
    text = "Filters [2]." + unit * 60 + (tail if unit.startswith(" The") else "")

    end = end_before_loop(text)

    assert end is not None
    assert text[:end] == ("Filters [2]." + unit).rstrip()


@pytest.mark.parametrize(
    "unit",
    [
        "退款需要五天[1]。",
        "首先请打开设置，然后选择网络，",
        "アア",
        "คืนเงินภายในห้าวัน",
        "a",
        "。",
        "🙂",
    ],
)
def test_a_loop_needs_no_blanks(unit):
    end = end_before_loop("Filters [2]. " + unit * (900 // len(unit)))

    assert end is not None
    assert end <= len("Filters [2]. ") + 2 * len(unit)


def test_a_list_that_goes_on_counting_is_a_loop():
    text = "\n".join(f"{n}. {SENTENCE}" for n in range(1, 30))

    assert end_before_loop(text) == len(f"1. {SENTENCE}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        SENTENCE,
        "\n".join(f"- Valve {n}: open it by {n} turns [1]." for n in range(60)),
        "| a | b |\n|---|---|\n" + "| - | - |\n" * 80,
        "\n".join(f"{n}. Tighten bolt {n}." for n in range(1, 60)),
        f"{SENTENCE} {SENTENCE} {SENTENCE}",
        "退款需要五天[1]。请在设置中打开网络选项并选择您的路由器。如果没有信号，请重新启动设备。"
        * 2,
        "Contents\n\n" + "One " + "." * 300 + " 7",
    ],
)
def test_what_is_merely_regular_is_none(text):
    assert end_before_loop(text) is None
