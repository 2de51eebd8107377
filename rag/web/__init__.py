"""The web server: one Flask app with the JSON API, the OpenAI protocol and the pages."""

from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from flask import Flask
from flask_openapi3.models.info import Info

from rag.llm.discovery import SecretBox
from rag.sessions.recognition import FingerprintTable
from rag.web import turns
from rag.web.access.owner import believe_proxies, find_owners
from rag.web.access.security import admit_origins, limit_rates, protect
from rag.web.api import documents, evidence, operations, sessions, sources, tables
from rag.web.api.documents import BYTES_PER_MB
from rag.web.api.schemas import DescribedApp
from rag.web.http_server import log_as_json
from rag.web.openai import chat, completion, responses
from rag.web.pages.conversations import pages
from rag.web.pages.documents import collection_pages, document_pages
from rag.web.pages.sessions import long_talk, session_pages
from rag.web.pages.settings import login, model_pages, preferences
from rag.web.pages.sources import source_pages
from rag.web.pages.tables import table_pages
from rag.web.problems import Problem, handle_errors, refuse_fields
from rag.web.request_context import EXTENSION, JsonRequest
from rag.web.turns import compress_text, give_budgets, limit_answers
from rag.wiring.components import package_folder
from rag.wiring.listeners import listener_policy

if TYPE_CHECKING:
    from rag.wiring.application import Application

VERSION = "1"
LARGEST_FILES_AT_ONCE = 20  # how many files of the largest size one upload may hold
A_YEAR = timedelta(days=365)


# Endpoints whose streams say how many requests wait before them.
TELLING = frozenset(
    {
        "messages.ask",
        "messages.regenerate",
        "openai.complete_chat",
        "responses.respond",
        "pages.ask_first",
        "pages.ask",
        "pages.regenerate",
    }
)
# Endpoints that hold a thread for as long as a model takes.
ANSWERING = TELLING | {
    "messages.follow",
    "context.compact",
    "context.summarize",
    "session_pages.compact",
    "session_pages.summarize",
}


def create_app(application: "Application") -> Flask:
    """Create the Flask app over the application that `rag.wiring.build` made."""
    log_as_json("rag.chat.assistant", "rag.web.problems")
    static = package_folder("static")
    app = DescribedApp(
        "rag.web",
        info=Info(title="Groundnote", version=VERSION),
        security_schemes={"token": {"type": "http", "scheme": "bearer"}},
        validation_error_model=Problem,
        validation_error_callback=refuse_fields,
        doc_ui=False,
        template_folder=str(package_folder("templates")),
        static_folder=str(static),
        static_url_path=f"/static/{edition(static)}",
    )
    configure(app, application)
    for api in (
        documents.api,
        documents.collections_api,
        sessions.api,
        sessions.messages_api,
        tables.api,
        evidence.api,
        sources.api,
        sessions.context_api,
        chat.api,
        responses.api,
        operations.api,
    ):
        app.register_api(api)
    app.add_url_rule("/openapi.json", "openapi", lambda: app.api_doc)
    return app


def edition(folder: Path) -> str:
    """Return a digest of a folder's files; it names their URLs, so that browsers may cache them."""
    digest = sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def configure(app: Flask, application: "Application") -> None:
    """Install everything that holds for every route."""
    settings = application.settings
    app.request_class = JsonRequest
    app.extensions[EXTENSION] = application
    app.extensions[turns.EXTENSION] = turns.Turns(settings.web.threads)
    app.extensions[completion.EXTENSION] = FingerprintTable(application.engine)
    largest = settings.documents.max_file_mb * BYTES_PER_MB
    app.config.update(
        MAX_CONTENT_LENGTH=int(LARGEST_FILES_AT_ONCE * largest),
        MAX_FORM_PARTS=2000,
        SEND_FILE_MAX_AGE_DEFAULT=A_YEAR,  # changed files have another URL
    )
    policy = listener_policy(settings, settings.web.host)
    believe_proxies(app, policy, SecretBox(settings.data_dir))
    find_owners(app, settings, application.engine)
    handle_errors(app)
    app.after_request(compress_text)
    admit_origins(app, settings)
    protect(app, policy)
    give_budgets(app)
    limit_rates(app, settings)
    are_one = settings.auth.mode == "single"
    limit_answers(app, ANSWERING, TELLING, threads=settings.web.threads, are_one=are_one)
    for blueprint in (
        login,
        pages,
        session_pages,
        document_pages,
        collection_pages,
        source_pages,
        table_pages,
        model_pages,
        preferences,
        long_talk,
    ):
        app.register_blueprint(blueprint)
