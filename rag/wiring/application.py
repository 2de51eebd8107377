"""The application: all parts, built from the settings, as the server and the commands use them."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from rag.connectors.registry import SourceRegistry
from rag.connectors.table import SourceTable
from rag.db.audit_trail import acting
from rag.db.engine import damage_in_words, damaged_tables, is_of_words
from rag.documents.store import EmbeddingClaims, IndexDebts, SqlDocumentStore
from rag.errors import RagError, SetupError, StorageFailed, UserError
from rag.language.lazy_patterns import compile_all
from rag.llm.discovery import (
    IN_USE,
    TRIED,
    ModelConnection,
    ModelConnections,
    ModelServer,
    ModelTrial,
    SecretBox,
    local_servers,
    models_at,
    try_model,
)
from rag.operations import (
    Differences,
    documents_of,
    note_manifest,
    read_manifest,
    refuse_emptied,
    repair,
    set_back,
    tables_without_rows,
)
from rag.operations.measurements import SharedFigures
from rag.records import EVERYTHING
from rag.runtime.error_log import log_throttled
from rag.runtime.metrics import Metrics, Traces
from rag.runtime.progress import Progress
from rag.seams import ChunkIndex, Embedder
from rag.sessions.store import SqlConversationStore
from rag.settings import PREFIX, Settings
from rag.wiring.components import (
    file_places,
    once,
    open_collections,
    open_embedder,
    open_index,
    open_loader,
    open_model,
    open_originals,
    open_second,
    open_tables,
    open_window,
)
from rag.wiring.readiness import check_judge, checks_of, looked_at
from rag.wiring.stores import open_database, syncs_of, watch_of

if TYPE_CHECKING:
    from rag.chat.assistant import Assistant
    from rag.chat.context import ContextBuilder
    from rag.documents.sandbox import GuardedLoader
    from rag.ingestion.pipeline import Ingestion
    from rag.jobs.background import BackgroundJobs
    from rag.llm.openai_compatible import OpenAIChatModel
    from rag.llm.windows import CalibratedCounter, ModelWindow
    from rag.memory.conversation import ConversationMemory
    from rag.search.hybrid import HybridRetriever
    from rag.search.lexical import LexicalIndex
    from rag.search.multilingual import MultilingualVectors
    from rag.tables.answers import TableAnswers
    from rag.tables.store import TableStore

CONNECTION_LOOK_SECONDS = 1.0  # between two checks whether another process connected a model
LONGEST_ADDRESS = 500
LONGEST_KEY = 2000
MOST_CHOICES = 20


class ConnectedModel:
    """The model that an operator connects in the browser, if the settings name none."""

    def __init__(self, configured: Settings, engine: Engine) -> None:
        self._configured = configured
        self._connections = ModelConnections(engine, SecretBox(configured.data_dir))
        self._version = 0
        self._looked_at = 0.0
        self.problem = ""  # why the stored connection cannot be used

    @property
    def origin(self) -> str:
        """Where the current model is configured: "variable", "file", "browser", or "" for none."""
        if not self._configured.llm.is_configured:
            return "browser" if self.current is not None else ""
        return "variable" if os.environ.get(f"{PREFIX}LLM__MODEL") else "file"

    @property
    def current(self) -> ModelConnection | None:
        """The connection made in the browser; None if there is none or its key cannot be read."""
        try:
            connection = self._connections.connection()
        except SetupError as error:
            self.problem = str(error)
            log_throttled(log, "The connected model is not used", error)
            return None
        self.problem = ""
        return connection

    def settings(self) -> Settings:
        """Return the settings, with the connected model if they name none."""
        self._version = self._connections.version()
        self._looked_at = monotonic()
        connection = None if self._configured.llm.is_configured else self.current
        if connection is None:
            return self._configured
        llm = self._configured.llm.connected(
            connection.base_url, connection.model, connection.api_key, connection.choices
        )
        return self._configured.model_copy(update={"llm": llm})

    def has_changed(self) -> bool:
        """Return whether a model was connected or disconnected since `settings`.

        It checks at most once a second.
        """
        is_fresh = monotonic() - self._looked_at < CONNECTION_LOOK_SECONDS
        if is_fresh or self._configured.llm.is_configured:
            return False
        self._looked_at = monotonic()
        return self._connections.version() != self._version

    # ── What an operator does ────────────────────────────────────────────────────────────────

    def servers(self) -> list[ModelServer]:
        """Return the model servers that run on this machine."""
        return local_servers({self._configured.web.port})

    def tried(self) -> ModelConnection | None:
        """Return the connection being tried; None also if its key cannot be read any more."""
        with suppress(SetupError):
            return self._connections.connection(TRIED)
        return None

    def look(self, base_url: str, api_key: str) -> tuple[str, ...]:
        """Return the names of the models at an address, and store it with its key to be tried.

        An empty key for the same address means the key stored before.

        Raises:
            UserError: the settings name the model, or this is no address.
            Forbidden: the address is in the private network, and not in sources.private_hosts.
            ModelUnavailable: no such server answers there.
        """
        self._refuse_where_settings_name_one()
        self._check(base_url, api_key)
        before = self.tried()
        if not api_key and before is not None and before.base_url == base_url:
            api_key = before.api_key
        names = models_at(base_url, api_key)
        self._connections.keep(ModelConnection(base_url, "", api_key), TRIED)
        return names

    def try_out(self, model: str) -> ModelTrial:
        """Test what a model of the server being tried can do. Raises UserError."""
        looked_at = self._looked_at_server()
        llm = self._configured.llm.connected(looked_at.base_url, model, looked_at.api_key)
        settings = self._configured.model_copy(update={"llm": llm})
        chat_model, window = open_model(settings), open_window(settings)
        assert chat_model is not None
        assert window is not None
        return try_model(chat_model, window.tokens())

    def use(self, model: str, choices: tuple[str, ...] = ()) -> None:
        """Let a model of the server being tried answer from now on, in every process."""
        self._refuse_where_settings_name_one()
        looked_at = self._looked_at_server()
        if not 0 < len(model) <= LONGEST_ADDRESS:
            raise UserError("Choose a model by its name.")
        if len(choices) > MOST_CHOICES:
            raise UserError(
                f"{len(choices)} models are too many to pick from; at most {MOST_CHOICES}."
            )
        self._connections.keep(
            ModelConnection(looked_at.base_url, model, looked_at.api_key, choices), IN_USE
        )

    def disconnect(self) -> None:
        """Answer without a model again; delete the connection and its key."""
        self._refuse_where_settings_name_one()
        self._connections.forget()

    def _looked_at_server(self) -> ModelConnection:
        connection = self.tried()
        if connection is None:
            raise UserError("Look at a server first: give its address under Settings → Models.")
        return connection

    def _refuse_where_settings_name_one(self) -> None:
        if self._configured.llm.is_configured:
            raise UserError(
                f"The model is named in the {self.origin} (llm.model is "
                f"{self._configured.llm.model!r}), which comes before the browser. Take it out "
                "there to connect one here."
            )

    def _check(self, base_url: str, api_key: str) -> None:
        from rag.connectors.guard import Guard

        try:
            parts = urlsplit(base_url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            parts, port = urlsplit(""), 0
        is_address = parts.scheme in ("http", "https") and parts.hostname and not parts.username
        if not is_address or not base_url.isprintable() or len(base_url) > LONGEST_ADDRESS:
            raise UserError(
                f"{base_url[:100]!r} is no address of a model server. One such as "
                "http://127.0.0.1:11434/v1 or https://api.openai.com/v1 is expected."
            )
        if len(api_key) > LONGEST_KEY or not api_key.isascii() or not api_key.isprintable():
            raise UserError("A key is one line of letters, digits and signs.")
        allowed = ("127.0.0.0/8", "::1/128", *self._configured.sources.private_hosts)
        Guard(allowed, ports=None).addresses(str(parts.hostname), port)


TIDY_SECONDS = 3600  # between two deletions of expired sessions
LOOK_SECONDS = 3.0  # between two checks for chunks that the second model has not embedded
LOST_SECONDS = 15.0  # between two checks for answers whose process died
FIRST_PAUSE_SECONDS = 1.0  # between two tries to warm up
MADE_OF_A_MODEL = (
    "count", "model", "picked_windows", "asked", "remembered", "memory", "_assistant",
)  # fmt: skip
_LOADING = Lock()
log = logging.getLogger(__name__)


class Application:
    """All parts of Groundnote; parts that answer are made at their first use.

    What shows a page is made at once. Models load, and servers are called, only when first needed.
    """

    def __init__(self, settings: Settings, embedder: Embedder | None = None) -> None:
        """`embedder` replaces the settings' one in tests. Raises SetupError."""
        self.settings = settings
        self._embedder_override = embedder
        self.engine = open_database(settings)
        self.connected = ConnectedModel(settings, self.engine)
        self.settings = self.connected.settings()
        self.traces = Traces()
        self.metrics = Metrics(self.traces.root)
        self.figures = SharedFigures(self.engine, self.metrics.registry)
        self.documents = SqlDocumentStore(self.engine, open_originals(settings))
        self.collections = open_collections(settings, self.engine)
        self.store = SqlConversationStore(self.engine, readable=self.collections.readable)
        self.stopping = Event()
        self.warm = Event()
        self.tried = Event()  # warming up was tried at least once
        self.last_checks: dict[str, bool] = {}  # results of the last readiness checks
        self.fault = ""  # of the database, which needs an operator

    # ── Made at the first use ────────────────────────────────────────────────────────────────

    @once
    def embedder(self) -> Embedder:
        return self._embedder_override or open_embedder(self.settings)

    @once
    def index(self) -> ChunkIndex:
        return open_index(self.settings, self.embedder, self.engine)

    @once
    def second(self) -> "MultilingualVectors | None":
        """The multilingual embedder; None where a test passes an embedder of its own."""
        return open_second(self.settings, self.engine) if self._embedder_override is None else None

    @once
    def words(self) -> "LexicalIndex":
        from rag.search.lexical import LexicalIndex

        return LexicalIndex(self.engine)

    @once
    def tables(self) -> "TableStore":
        return open_tables(self.settings, self.engine)

    @once
    def loader(self) -> "GuardedLoader":
        return open_loader(self.settings)

    @once
    def ingestion(self) -> "Ingestion":
        from rag.ingestion.pipeline import Ingestion

        made = Ingestion(
            self.documents, self.embedder, self.index, loader=self.loader, tables=self.tables
        )
        made.ask_rights(self.collections.right)
        if self.settings.retrieval.is_shared:
            made.share_with(EmbeddingClaims(self.engine))
        return made

    @once
    def sources(self) -> SourceRegistry:
        return SourceRegistry(
            SourceTable(self.engine),
            self.documents,
            self.settings.sources,
            lambda source: self.jobs.submit_sync(source),
            SecretBox(self.settings.data_dir),
        )

    @once
    def jobs(self) -> "BackgroundJobs":
        from rag.jobs.background import BackgroundJobs, uploads_for
        from rag.jobs.queue import JobQueue, JobTable

        jobs, folder = self.settings.jobs, self.settings.data_dir
        table = JobTable(self.engine)
        made = BackgroundJobs(
            JobQueue(table, folder=folder, url=jobs.url, workers=jobs.workers),
            self.store,
            ingestion=lambda: self.ingestion,
            compact=lambda session: self.memory.compact(session, force=False),
            uploads=uploads_for(self.engine, folder),
            metrics=self.metrics,
        )
        made.run_rereads(self.reread)
        made.run_syncs(lambda source_id, report: syncs_of(self).run(source_id, report))
        return made

    @once
    def count(self) -> "CalibratedCounter":
        from rag.llm.windows import CalibratedCounter, token_counter

        return CalibratedCounter(token_counter(self.settings.llm.model or ""))

    @once
    def model(self) -> "OpenAIChatModel | None":
        """The one client of the model: writer and memory share what its server refused."""
        return open_model(self.settings)

    @once
    def picked_windows(self) -> "dict[str, ModelWindow]":
        """The windows of the other models that may be picked for a session."""
        settings, others = self.settings, self.settings.llm.pickable[1:]
        opened = {name: open_window(settings, name) for name in others}
        return {name: window for name, window in opened.items() if window is not None}

    @once
    def remembered(self) -> "ConversationMemory":
        """The memory of sessions, shared by context and tools so that a session is read once."""
        from rag.wiring.answers import conversation_memory_of

        return conversation_memory_of(self)

    @once
    def table_answers(self) -> "TableAnswers":
        from rag.wiring.answers import table_answers_of

        return table_answers_of(self)

    @once
    def retriever(self) -> "HybridRetriever":
        from rag.wiring.answers import retriever_of

        return retriever_of(self)

    @once
    def memory(self) -> "ContextBuilder":
        from rag.wiring.answers import memory_of

        return memory_of(self)

    @property
    def assistant(self) -> "Assistant":
        """The assistant with the currently connected model, whatever process connected it."""
        if self.connected.has_changed():
            self._take_connection()
        return self._assistant

    @property
    def pickable_models(self) -> tuple[str, ...]:
        """The models of the current server that may be picked for a session."""
        if self.connected.has_changed():
            self._take_connection()
        return self.settings.llm.pickable

    @once
    def _assistant(self) -> "Assistant":
        from rag.wiring.answers import assistant_of

        return assistant_of(self)

    def _take_connection(self) -> None:
        """Drop all parts that depend on the model; answers in progress keep the old one."""
        with _LOADING:
            self.settings = self.connected.settings()
            for name in MADE_OF_A_MODEL:
                vars(self).pop(name, None)

    # ── Its life ─────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Recover what a killed process left, and start the background work."""
        try:
            check_judge(self.settings.checks.nli_model)
        except SetupError as error:
            log_throttled(log, "Nothing is judged", error)
        if older := set_back(self.engine, self.settings.data_dir):
            log_throttled(log, "The database was put back", older)
        # Only one process may open an embedded index: then no other one can be answering.
        is_local = self.engine.dialect.name == "sqlite"
        is_alone = is_local and not self.settings.retrieval.is_shared
        self.store.interrupt_lost(is_alone=is_alone)
        self.store.give_up_judging(is_alone=is_alone)
        self.forget_old_sessions()
        self.jobs.start(self.load)
        Thread(target=self._tidy_up, name="tidy", daemon=True).start()
        if self._does_jobs:
            Thread(target=watch_of, args=(self,), name="watch", daemon=True).start()
            Thread(target=self._improve_search, name="second model", daemon=True).start()

    def load(self) -> None:
        """Load what questions and jobs need, in one thread. Raises SetupError.

        Two threads that import libraries which import each other can see one of them half loaded,
        and the client of models searches for modules that the index loads.
        """
        with _LOADING:
            _ = self._assistant, self.ingestion
            if self.settings.llm.is_configured or self.settings.embedding.base_url is not None:
                import_module("openai")

    def _tidy_up(self) -> None:
        """End answers that other processes left pending, and do other regular work."""
        forgotten_at = monotonic()
        while not self.stopping.wait(min(LOST_SECONDS, TIDY_SECONDS)):
            with suppress(SQLAlchemyError, OSError, RagError):  # not reachable: tried again soon
                self.store.interrupt_lost()
                self.figures.tell()
                self._note()
                self.sources.submit_due()
                if monotonic() - forgotten_at > TIDY_SECONDS:
                    self.forget_old_sessions()
                    self.store.give_up_judging()
                    forgotten_at = monotonic()

    def _improve_search(self) -> None:
        """Embed with the second model what only the first has embedded.

        Never during an upload: the first questions would wait for both.
        """

        def is_over() -> bool:
            return self.stopping.is_set() or self.ingestion.is_at_work

        while self.second is not None and not self.stopping.wait(LOOK_SECONDS):
            if is_over():
                continue
            with suppress(SQLAlchemyError, OSError):  # not reachable: tried again soon
                try:
                    for done, total in self.second.make_missing(is_over):
                        log.info("Search gets better: %d of %d passages", done, total)
                except RagError as error:
                    log_throttled(log, "The second model is not used", error)

    @property
    def _does_jobs(self) -> bool:
        return self.settings.jobs.workers > 0

    def keep_ready(self) -> None:
        """Warm up, and then keep the index in step with the database, until the application stops.

        Services that are not reachable are tried again, so that nothing has to be restarted.
        """
        pause = FIRST_PAUSE_SECONDS
        while not self.stopping.wait(0 if not self.tried.is_set() else pause):
            try:
                if self.warm.is_set():
                    self._mend_index()
                else:
                    self.warm_up()
                pause = LOST_SECONDS
            except (RagError, SQLAlchemyError, OSError) as error:
                log_throttled(log, "Not everything is there", error)
                pause = min(LOST_SECONDS, 2 * pause)
            finally:
                self.tried.set()
                self.ready()

    def warm_up(self) -> None:
        """Load model and index before the first question, and complete the index."""
        self.look_at_database()
        self.load()
        if self._does_jobs:
            self.loader.start()  # while the model loads
        vectors = self.embedder.embed(["warm"])
        self.warm.set()
        self.index.nearest(vectors, EVERYTHING, limit=1)
        self.refuse_emptied()
        if self._does_jobs:
            self._copy_vectors()
            self.repair()
        self.tried.set()

    def _copy_vectors(self) -> None:
        """Copy vectors from the index that the settings named before into the current one."""
        from rag.search.pgvector import ChangingIndex

        if not isinstance(self.index, ChangingIndex) or self.index.is_over:
            return
        with EmbeddingClaims(self.engine).one_writer():  # another process may have copied them
            debts = IndexDebts(self.engine)
            count = self.index.copy(debts.embedded_batches, debts.places)
        if count:
            log_throttled(log, "The vector index was changed", f"{count} vectors were copied")

    def prepare_answers(self) -> None:
        """Load what the first answers would otherwise wait for."""
        from rag.language.words import opposites, related

        compile_all()
        self.count("tokens")
        related("words")
        opposites()
        _ = self.retriever.usual

    def refuse_emptied(self) -> None:
        """Raise SetupError if the database is new but the index holds a library."""
        try:
            refuse_emptied(self.engine, self.settings.data_dir, vectors=self.index.count())
        except SetupError as error:
            self.fault = str(error)
            raise

    def look_at_database(self) -> None:
        """Check every page of the database. Raises StorageFailed if only a backup helps."""
        damaged = [name for name in damaged_tables(self.engine) if not is_of_words([name])]
        self.fault = damage_in_words(damaged) if damaged else ""
        if self.fault:
            raise StorageFailed(self.fault)

    def _mend_index(self) -> None:
        """Fill the index again if it lost vectors, for example with its folder."""
        if self._does_jobs:
            self._copy_vectors()  # continue an interrupted copy
        present, wanted = self.index.count(), self.documents.embedded_count()
        if present < wanted and self._does_jobs:
            log_throttled(
                log, "The vector index is rebuilt", f"it holds {present} of {wanted} chunks"
            )
            self.repair()

    def _note(self, **options: Any) -> None:
        note_manifest(self.engine, self.settings.data_dir, file_places(self.settings), **options)

    def repair(self, *, is_asked: bool = False) -> Differences:
        """Make vectors, words and rows follow the database again; return what was done.

        With `is_asked`, an operator accepts the database as it is, and all files are read.
        """
        with self.ingestion.alone():
            differences = repair(
                self.engine,
                self.index,
                folder=self.settings.data_dir,
                embed_missing=self.ingestion.synchronise,
            )
        self.rows_made_again(reads=is_asked)
        self._note(accepts=is_asked)
        return differences

    def without_original(self, *, reads: bool = False) -> dict[str, str]:
        """Return names of documents, by id, whose file is missing or, with `reads`, has changed."""
        if not self.settings.documents.keep_originals:
            return {}
        return self.documents.without_original(reads=reads)

    def without_rows(self, *, reads: bool = False) -> set[str]:
        """Return ids of tables whose rows are missing or differ from the manifest."""
        before, places = read_manifest(self.settings.data_dir), file_places(self.settings)
        return tables_without_rows(self.tables, places, before.rows if before else {}, reads=reads)

    def rows_made_again(self, *, reads: bool = False) -> list[str]:
        """Read documents with missing rows again from their kept files; return their names."""
        lacking = self.without_rows(reads=reads)
        lost = self.without_original(reads=True) if lacking else {}
        made, remade = [], set()
        for document_id, name in documents_of(self.tables, lacking).items():
            path = self.documents.original(self.documents.document(document_id, EVERYTHING))
            if path is not None and document_id not in lost:
                table_ids = lacking & {
                    t.id for t in self.tables.tables(EVERYTHING, document_id=document_id)
                }
                self.tables.files.remove(table_ids)  # incomplete files would count as complete
                remade |= table_ids
                self.ingestion.read_rows_again(document_id, path.read_bytes())
                made.append(name)
        if made:
            self._note(remade=remade)
        return made

    def reread(self, collection_id: str) -> Iterator[tuple[int, int, Progress]]:
        """Read again what older readers read of a collection; yield done, total and progress.

        A file that the new reader refuses keeps its text, and its report says why.
        """
        older = self.documents.read_before(EVERYTHING.only([collection_id]))
        from rag.ingestion.pipeline import stored_files

        files = stored_files(self.documents, older)
        done = 0
        for report in self.ingestion.ingest(files):
            done += report.is_final
            yield done, len(older), report

    def stop(self) -> None:
        """Close the index, the reading process and the database."""
        self.stopping.set()
        with suppress(SQLAlchemyError, RagError, OSError):
            self.figures.tell()
            self._note()
        made = vars(self)  # parts that were never used need no stop
        if "jobs" in made:
            self.jobs.stop()
        self.traces.close()
        if "loader" in made:
            self.loader.close()
        if "index" in made:
            self.index.close()
        self.engine.dispose()

    def forget_old_sessions(self) -> int:
        """Delete sessions unused for longer than `sessions.ttl_hours`; return how many."""
        hours, expired = self.settings.sessions.ttl_hours, self.store.delete_expired()
        if hours is None:
            return expired
        with acting("", "sessions.ttl_hours"):
            oldest = datetime.now(UTC) - timedelta(hours=hours)
            return expired + self.store.delete_unused_since(oldest)

    def ready(self) -> dict[str, bool]:
        """Return for each part that answers need whether it works."""
        self.last_checks.update(looked_at(checks_of(self)))
        return dict(self.last_checks)

    def can_answer(self, checks: Mapping[str, bool]) -> bool:
        """Return whether questions can be answered, at least by words alone."""
        has_begun = checks["embedding_model"] or self.tried.is_set()
        return checks["database"] and checks["storage"] and has_begun


def build(settings: Settings, *, embedder: Embedder | None = None) -> Application:
    """Build the whole application, over the migrated database. Raises SetupError."""
    return Application(settings, embedder)


@contextmanager
def opened(settings: Settings) -> Iterator[Application]:
    """Open the application without a server, for one command."""
    application = build(settings)
    try:
        yield application
    finally:
        application.stop()
