"""Pages with what stands on each of them: the list of sessions, and where we are."""

from typing import Any

from flask import render_template, request
from werkzeug.wrappers import Response

from rag.web.access.owner import current_owner, has_login
from rag.web.current import application

SESSIONS_LISTED = 30
Shown = Response | str | tuple[str, int]


def show_page(template: str, **values: Any) -> str:
    """Render a page with its sidebar."""
    listed = application().store.sessions(current_owner(), limit=SESSIONS_LISTED + 1)
    return render_template(
        template,
        listed_sessions=listed[:SESSIONS_LISTED],
        has_more_sessions=len(listed) > SESSIONS_LISTED,
        open_session_id=(request.view_args or {}).get("session_id"),
        has_login=has_login(),
        **values,
    )
