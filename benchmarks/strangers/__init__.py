"""Tables of 23 trades, and what people ask of them in turn, English and German."""

from benchmarks.strangers.dev import DEV
from benchmarks.strangers.figures import Turn, Wanted
from benchmarks.strangers.fourth import FOURTH
from benchmarks.strangers.second import SECOND
from benchmarks.strangers.third import THIRD
from benchmarks.strangers.unseen import UNSEEN

PARTS = {"dev": DEV, "second": SECOND, "unseen": UNSEEN, "third": THIRD, "fourth": FOURTH}

__all__ = ["PARTS", "Turn", "Wanted"]
