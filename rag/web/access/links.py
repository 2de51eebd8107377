"""The addresses of sources: as people reach them, and signed ones that open without a login."""

from collections.abc import Callable

from flask import request
from itsdangerous import BadData, URLSafeTimedSerializer

from rag.errors import NotFound
from rag.records import Source, SourceState
from rag.seams import SessionHandle
from rag.settings import WebSettings
from rag.web.request_context import application

SALT = "groundnote source"
GONE = "This link is not valid, or not any more. Ask for the answer again."


def public_root() -> str:
    """Where people open the library, with a slash at its end."""
    told = application().settings.web.public_url
    return f"{told.rstrip('/')}/" if told else request.host_url


def source_links(session: SessionHandle) -> Callable[[int], str]:
    """The address of each source of a session, as it is told outside."""
    root, signer, owner = public_root(), _signer(application().settings.web), session.owner
    if signer is None:
        return lambda number: f"{root}sessions/{session.id}/sources/{number}"
    return lambda number: f"{root}links/{signer.dumps([session.id, owner, number])}"


def linked_source(token: str) -> Source:
    """The source of a signed link, while whoever was given it may read it. Raises NotFound."""
    web = application().settings.web
    signer = _signer(web)
    try:
        if signer is None:
            raise NotFound(GONE)
        session_id, owner, number = signer.loads(token, max_age=int(web.link_hours * 3600))
        session = application().store.open(session_id, owner=owner)
    except (BadData, NotFound) as error:
        raise NotFound(GONE) from error
    for source in session.sources([number]):
        if source.state is not SourceState.DELETED:
            return source
    raise NotFound(GONE)


def _signer(web: WebSettings) -> URLSafeTimedSerializer | None:
    """The first key signs, all are believed: a new one is put before the old."""
    if not web.link_keys:
        return None
    keys = [key.get_secret_value() for key in reversed(web.link_keys)]
    return URLSafeTimedSerializer(keys, salt=SALT)
