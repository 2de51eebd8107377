"""One scale of type and one of room: what is seen on all pages comes from a few steps."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SHEETS = {path.name: path.read_text("utf-8") for path in (ROOT / "static").glob("*.css")}
MOST_SIZES = 6
# The reader's own size and its paper; what stands in a page of a PDF is as large as there.
OF_ITS_OWN = {"100%", "80%", "inherit", "calc(var(--text-scale-factor) * var(--font-height))"}


def declared(names):
    """The values that properties of these names are given in all sheets."""
    pattern = re.compile(rf"(?<![\w-])(?:{names}):\s*([^;}}]+)")
    return [found[1].strip() for sheet in SHEETS.values() for found in pattern.finditer(sheet)]


def test_there_are_six_sizes_of_type():
    sizes = set(re.findall(r"(--size-[a-z]+):", "".join(SHEETS.values())))

    assert len(sizes) <= MOST_SIZES
    for value in declared("font-size|font"):
        size = re.search(r"var\((--size-[a-z]+)\)", value)
        assert (size and size[1] in sizes) or value.split("/")[0] in OF_ITS_OWN, value


def test_room_between_things_is_a_step_of_the_scale():
    steps = set(re.findall(r"(--space-\d):", SHEETS["base.css"]))

    values = declared(r"(?:padding|margin|gap)[a-z-]*")
    assert {step for value in values for step in re.findall(r"--space-\d", value)} <= steps
    # em stays with the text that it stands in; the one rem is that of an icon in a field
    own = [value for value in values if re.search(r"[\d.]rem", value)]
    assert [value.rpartition("calc(")[2] for value in own] == ["1rem + var(--space-6))"]


def test_no_page_brings_sizes_of_its_own():
    for path in (ROOT / "templates").glob("*.html"):
        if path.name == "report.html":
            continue  # a file of its own, opened without our sheets
        assert not re.search(r"font-size|style=", path.read_text("utf-8")), path.name
