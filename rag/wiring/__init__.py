"""Settings to objects; the only place that names implementations.

Each module is loaded by whoever needs it: a command that lists sessions waits for nothing else.
"""
