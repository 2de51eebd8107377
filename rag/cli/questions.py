"""Ask on a terminal: here, or the running server, which holds the index."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rag.cli.remote import RemoteServer, ServerEvent
from rag.records import Failed
from rag.settings import Settings
from rag.wiring.listeners import running_server

AskServer = Callable[[str], Iterator[ServerEvent]]  # a question to the events of its turn


@contextmanager
def asking_with(
    settings: Settings, session_id: str | None, collections: tuple[str, ...]
) -> Iterator[tuple[AskServer, str]]:
    """What asks, and the session that it asks in."""
    url = running_server(settings.data_dir)
    if url is not None:
        server = RemoteServer(url)
        used_id = session_id or server.create_session(collections)
        try:
            yield (lambda question: server.ask(used_id, question)), used_id
        finally:
            server.close()
        return
    with _asking_here(settings, session_id, collections) as both:
        yield both


@contextmanager
def _asking_here(
    settings: Settings, session_id: str | None, collections: tuple[str, ...]
) -> Iterator[tuple[AskServer, str]]:
    from rag.web.api.sse import encode
    from rag.web.server import opened

    with opened(settings) as application:
        owner = settings.sessions.default_owner
        store = application.store
        session = store.open(session_id, owner=owner) if session_id else store.create(owner)
        if collections:
            named = application.collections.named
            session.choose([named(owner, collection).id for collection in collections])

        def asking(question: str) -> Iterator[ServerEvent]:
            for event in application.assistant.ask(session, question):
                if isinstance(event, Failed):  # whoever asks here may know of wrong settings
                    yield "error", {"detail": event.message}
                else:
                    yield encode(event, session_id=session.id)
            application.jobs.run_waiting()

        yield asking, session.id
