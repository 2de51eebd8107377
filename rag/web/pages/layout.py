"""Pages with what stands on each of them: the list of sessions, and where we are."""

from typing import Any

from flask import render_template, request
from werkzeug.wrappers import Response

from rag.web.access.owner import current_owner, has_login
from rag.web.access.rights import is_admin
from rag.web.request_context import application

SESSIONS_LISTED = 30
_NO_MEANING = "Search by meaning is away; words alone answer until it is back."
AWAY = {
    "model": _NO_MEANING,
    "index": _NO_MEANING,
    "queue": "New files wait: what reads them is away. All else goes on.",
    "storage": "The disk is full or can only be read: nothing new is kept until that is mended.",
}
PageResult = Response | str | tuple[str, int]


def show_page(template: str, **values: Any) -> str:
    """Render a page with its sidebar."""
    listed = application().store.sessions(
        current_owner(), limit=SESSIONS_LISTED + 1, one_version=True
    )
    return render_template(
        template,
        listed_sessions=listed[:SESSIONS_LISTED],
        has_more_sessions=len(listed) > SESSIONS_LISTED,
        open_session_id=(request.view_args or {}).get("session_id"),
        has_login=has_login(),
        is_operator=is_admin(),
        away=_away(),
        **values,
    )


def _away() -> list[str]:
    """What is not there, as the last look for `/readyz` found it; nothing before the first."""
    seen = application().seen if application().tried.is_set() else {}
    return list(dict.fromkeys(told for name, told in AWAY.items() if not seen.get(name, True)))
