"""Each request has a budget from its beginning to its end, and is left when its client has gone."""

from flask import Flask, g

from rag.runtime.budget import Budget, begin
from rag.web.serving.disconnects import way_to_tell


def give_budgets(app: Flask) -> None:
    """Whoever is known by now is the owner of the work."""

    @app.before_request
    def give() -> None:
        begin(Budget(owner=g.get("owner", ""), has_left=way_to_tell() or (lambda: False)))

    @app.teardown_request
    def end(_error: BaseException | None) -> None:
        begin(None)
