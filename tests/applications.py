"""Applications for tests: over a copied database, with templates that are compiled once."""

from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Thread

from jinja2 import FileSystemBytecodeCache
from sqlalchemy import make_url
from werkzeug.serving import make_server

from rag.chat.answers import Answering
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.context import ContextBuilder, MemoryRules
from rag.documents.files import IncomingFile
from rag.documents.sandbox import GuardedLoader
from rag.memory.conversation import ConversationMemory
from rag.memory.summariser import ApplicationModel, Summariser
from rag.settings import Settings
from rag.tokens import count_tokens
from rag.web import create_app
from rag.wiring.application import Application, build
from rag.wiring.components import load_limits, once
from tests.fakes import HashEmbedder
from tests.prepared import prepare


class Compiled(FileSystemBytecodeCache):
    """Templates that another test compiled, in this run or an earlier one."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(str(folder))
        self.known = {}

    def load_bytecode(self, bucket):
        name = bucket.key + bucket.checksum
        if name in self.known:
            bucket.bytecode_from_string(self.known[name])
            return
        super().load_bytecode(bucket)
        if bucket.code is not None:
            self.known[name] = bucket.bytecode_to_string()

    def dump_bytecode(self, bucket):
        self.known[bucket.key + bucket.checksum] = bucket.bytecode_to_string()
        super().dump_bytecode(bucket)


COMPILED = Compiled(Path(__file__).parents[1] / ".pytest_cache" / "d" / "templates")


class SharedLoader(GuardedLoader):
    """Reading processes that outlive an application: the next one reads with them."""

    def close(self):
        """They end with the tests."""


@once
def loader(application):
    """Everybody's."""
    return shared_loader(load_limits(application.settings))


shared_loader = cache(SharedLoader)
Application.loader = loader


def application_of(settings):
    """The whole application; only its embedding model is a fake."""
    prepare(make_url(settings.database_url).database)
    return build(settings, embedder=HashEmbedder())


@contextmanager
def application_over(folder, files):
    """The whole application over some files, by their names with folders."""
    application = application_of(Settings(data_dir=folder))
    contents = {
        name: text if isinstance(text, bytes) else text.encode() for name, text in files.items()
    }
    incoming = [
        IncomingFile(name, lambda _most, data=data: data) for name, data in contents.items()
    ]
    assert [r.name for r in application.ingestion.ingest(incoming) if r.stage == "failed"] == []
    yield application
    application.stop()


def remembered(application, model=None):
    """What an application remembers; a model writes its summaries."""
    summariser = None
    if model:
        ask = ApplicationModel(model, max_tokens=800, temperature=0)
        summariser = Summariser(ask, model.name, count_tokens)
    names = application.documents.lexicon
    return ConversationMemory(
        count_tokens, application.embedder, names=names, summariser=summariser
    )


def remembering(application, model, later=None):
    """An assistant like the application's, in a small window; a model may write summaries.

    It recalls what it leaves out, as one whose writer reads a context does.
    """
    memory = ContextBuilder(
        remembered(application, model),
        rules=MemoryRules(),
        window=lambda: 4000,
        count=count_tokens,
        later=later or (lambda session: memory.compact(session, force=False)),
    )
    own = application.assistant
    answering = Answering(own._answering._writer)
    return Assistant(application.retriever, own._followups, memory, answering, limits=TurnLimits())


def app_of(application):
    """Its web app."""
    app = create_app(application)
    app.jinja_env.bytecode_cache = COMPILED
    return app


@contextmanager
def served(app):
    """Its address on loopback: a server with threads, in this process."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
