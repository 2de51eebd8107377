"""Nothing of what the product says changes unseen: see `tests.goldens`."""

import difflib

import pytest

from tests.goldens.__main__ import file_of, lines_of
from tests.goldens.made import files

pytestmark = pytest.mark.slow
MADE_ANEW = "Read what changed. If it is meant: python -m tests.goldens {name}"


@pytest.mark.parametrize("name", files())
def test_says_what_it_said(name):
    known, now = file_of(name).read_text(encoding="utf-8"), lines_of(files()[name]())
    told = difflib.unified_diff(known.splitlines(), now.splitlines(), "was", "is", "", "", 0, "")

    assert known == now, "\n".join([MADE_ANEW.format(name=name), *told])
