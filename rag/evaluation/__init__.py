"""Former paths of `rag.regression`, which settings of pytest may name."""
