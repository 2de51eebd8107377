"""Tables of ten trades, and what people ask of them in turn, English and German."""

from benchmarks.strangers.dev import DEV
from benchmarks.strangers.figures import Turn, Wanted
from benchmarks.strangers.held_out import HELD_OUT

__all__ = ["DEV", "HELD_OUT", "Turn", "Wanted"]
