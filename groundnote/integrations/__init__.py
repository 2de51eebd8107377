"""The trimmer and the library inside other frameworks; each module needs its framework alone."""
