"""Builds objects from settings; the only package that names implementations.

Each module is loaded when it is needed: a command that lists sessions waits for nothing else.
"""
