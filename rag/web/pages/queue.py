"""Where many ask at once: a page that grows a line whenever somebody before its form is gone."""

from collections.abc import Callable, Iterator
from itertools import chain

from flask import copy_current_request_context, get_template_attribute, render_template
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from rag.errors import RagError
from rag.web.problems import problem_of
from rag.web.serving.requests import places_before


def led_when_due(begin: Callable[[], Response]) -> Response:
    """Where a form leads to: at once, or from a page that says how many wait before it.

    Raises:
        UserError: it cannot be begun, and nothing has been told yet.
    """
    places = places_before()
    before = next(places, None)
    if before is None:
        return begin()
    begin = copy_current_request_context(begin)
    head, _, foot = render_template("waiting.html").partition("<!-- places -->")
    line, go_on = (get_template_attribute("macros.html", name) for name in ("line", "go_on"))

    def told() -> Iterator[str]:
        yield head
        try:
            for place in chain([before], places):
                yield line(f"{place} before you" if place else "You are next")
            yield go_on(begin().location)
        except (RagError, HTTPException) as error:
            yield line(problem_of(error)["detail"])
        yield foot

    return Response(told(), mimetype="text/html")
