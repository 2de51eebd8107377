"""The trimmer and the library inside other frameworks; each module needs only its framework."""
