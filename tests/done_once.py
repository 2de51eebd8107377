"""Work that gives the same each time and that thousands of small applications would repeat."""

import ssl
from functools import cache

from sqlalchemy.util import LRUCache
from werkzeug.routing import Rule

from rag.db import engine as databases


def do_once():
    """For all tests of this process."""
    Rule._parse_rule = _parsed_once(Rule._parse_rule)
    Rule._compile_builder = _compiled_once(Rule._compile_builder)
    ssl.create_default_context = cache(ssl.create_default_context)
    databases.create_engine = _with_one_compiler(databases.create_engine)


def _parsed_once(parse_rule):
    """The places of a route are read from its text anew for each application."""
    known = {}

    def parsed(rule, text):
        if text not in known:
            before = len(rule._trace)
            parts = list(parse_rule(rule, text))
            trace = rule._trace[before:]
            known[text] = (
                parts,
                trace,
                {name: rule._converters[name] for is_one, name in trace if is_one},
            )
            return parts
        parts, trace, converters = known[text]
        rule._trace += trace
        rule._converters |= converters
        rule.arguments |= converters.keys()
        return parts

    return parsed


def _compiled_once(compile_builder):
    """Addresses are built by code that is compiled for each route of each application."""
    known = {}

    def compiled(rule, append_unknown=True):
        key = (rule.rule, tuple(rule._trace), repr(rule.defaults), append_unknown)
        if key not in known:
            known[key] = compile_builder(rule, append_unknown)
        return known[key]

    return compiled


def _with_one_compiler(create_engine):
    """Statements are compiled for each dialect, of which each engine has its own."""
    statements = LRUCache(5000)
    first = create_engine("sqlite://")
    first.connect().close()  # only then it knows what this SQLite can do

    def create(url, **options):
        engine = create_engine(url, **options)
        if engine.dialect.name == "sqlite":
            engine.dialect = engine.pool._dialect = first.dialect
            engine._compiled_cache = statements
        return engine

    return create
