"""Tables of fourteen trades, and what people ask of them in turn, English and German."""

from benchmarks.strangers.dev import DEV
from benchmarks.strangers.figures import Turn, Wanted
from benchmarks.strangers.held_out import HELD_OUT
from benchmarks.strangers.unseen import UNSEEN

__all__ = ["DEV", "HELD_OUT", "UNSEEN", "Turn", "Wanted"]
