"""`groundnote regress` and `groundnote eval`."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rag.documents.files import collect
from rag.errors import SetupError, UserError
from rag.evaluation.measures import Graded, grade, read_questions
from rag.evaluation.replay import Replay, replay
from rag.evaluation.script import documents_of, read_script
from rag.progress import Stage
from rag.settings import Settings
from rag.wiring.application import Application

OWNER = "regression"


def regress(settings: Settings, paths: Sequence[Path]) -> Iterator[Replay]:
    """Replay each script in a library and a database of its own, which are thrown away.

    The writer is the one of the settings, so the same scripts test the extractive writer in CI
    and a model before it goes live. Scripts over the same documents share their ingestion.
    """
    scripts = [(read_script(path), path) for path in _files(paths)]
    folders = [documents_of(script, path) for script, path in scripts]
    with ExitStack() as stack:
        libraries: dict[Path, Application] = {}
        for (script, _), folder in zip(scripts, folders, strict=True):
            if folder not in libraries:
                libraries[folder] = stack.enter_context(library(settings, folder))
            application = libraries[folder]
            session = application.store.create(OWNER, title=script.title)
            yield replay(script, application.assistant, session)


def evaluate(settings: Settings, questions: Path, documents: Path) -> Iterator[Graded]:
    """Ask each question of a file in a fresh session over a library of these documents."""
    known = read_questions(questions)
    with library(settings, documents) as application:
        for question in known:
            session = application.store.create(OWNER, title=question.id)
            yield grade(question, application.assistant, session)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Raises UserError for a folder without scripts: untested is not passed."""
    for path in paths:
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise UserError(f"{path} holds no .json file to replay.")
        yield from found


@contextmanager
def library(settings: Settings, folder: Path) -> Iterator[Application]:
    """An application over one folder of documents, in a folder that is deleted at the end."""
    from rag.web.server import opened

    with tempfile.TemporaryDirectory(prefix="groundnote-") as place:
        own = settings.model_copy(
            update={
                "data_dir": Path(place),
                "sessions": settings.sessions.model_copy(update={"database_url": None}),
                "retrieval": settings.retrieval.model_copy(update={"chroma_url": None}),
                "jobs": settings.jobs.model_copy(update={"url": None}),
            }
        )
        with opened(own) as application:
            files = collect([folder])
            if not files:
                raise UserError(f"{folder} holds no documents to answer from.")
            for progress in application.ingestion.ingest(files):
                if progress.stage is Stage.FAILED:
                    raise SetupError(f"{progress.name} of {folder}: {progress.reason}")
            yield application
