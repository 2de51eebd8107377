"""Markdown as generators of sites write it: what only machines read is not shown."""

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load

HIDDEN = ("{", "}", "[^", ":::", "!!!", "[!", "import ")


def sections(text):
    return load("a.md", text.encode(), limits=LoadLimits()).sections


def text_of(text):
    return "\n\n".join(each.text for each in sections(text))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{% tabs a %}\n\nPress it.\n\n{% endtabs %}", "Press it."),
        ('{{< note >}}Press it.{{< /note >}} {% include "x.html" %}', "Press it."),
        ('{% alert "hot" %}\n  <p>Do not touch.</p>\n{% endalert %}', "Do not touch."),
        ("Press it.\n{: .lead }", "Press it."),
        ('!!! warning "Hot"\n    Do not touch.', "Hot\n\nDo not touch."),
        ("!!! warning\n    Do not touch.", "Warning\n\nDo not touch."),
        (":::tip Quick\n\nUse both hands.\n\n:::", "Quick\n\nUse both hands."),
        (":::{note}\nUse both hands.\n:::", "Note\n\nUse both hands."),
        ("> [!NOTE]\n> Use both hands.", "Note: Use both hands."),
        ("`WAIT [TIME=<seconds>]` <b>now</b>", "WAIT [TIME=<seconds>] now"),
        ('Open [HR *Links*]({% page "/hr" %}) or [it]({{ base }}/b/).', "Open HR Links or it."),
        ('Ask in {% channel "help" %}. {% end %}', "Ask in help."),
        ("import Tabs from '@theme/Tabs';\n\nPress it.", "Press it."),
        ("Fuse\n: 2 A, slow\n\nLamp\n: 12 V", "- Fuse\n  2 A, slow\n- Lamp\n  12 V"),
        (
            "Use 5 kg[^1].\n\nMore.\n\n[^1]: 4 kg in *winter*.",
            "Use 5 kg.\n\n4 kg in winter.\n\nMore.",
        ),
        (
            "| a | b |\n|-|-|\n| 1[^n] | 2 |\n\n[^n]: Or 3.",
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nOr 3.",
        ),
    ],
)
def test_is_read_as_its_readers_see_it(written, read):
    assert text_of(written) == read
    assert not any(each in text_of(written) for each in HIDDEN)


def test_a_heading_is_called_as_it_is_read():
    [first, second] = sections("# Lamp {#lamp}\n\nLight.\n\n## Set up {#setup .wide}\n\nPress it.")

    assert second.heading_path[-1] == "Set up"
    assert "{" not in first.locator + second.locator


@pytest.mark.parametrize(
    "written",
    [
        "    {% raw %}",
        "`{% raw %}` and `{#id}`",
        "Call {{ name }} now.",
        "A set {a, b}",
        "Not defined[^9].",
        "We import goods from Japan.",
    ],
)
def test_code_and_text_stay_as_they_are(written):
    assert text_of(written) == written.replace("`", "")


def test_an_empty_cell_stays_a_cell():
    assert "| 1 |  |" in text_of("| a | b |\n|-|-|\n| 1 | {% x %} |")
