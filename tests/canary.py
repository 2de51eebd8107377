"""Secrets of a test's settings are looked for in all that its application wrote, said and answered.

Every test over `application_of` and `app_of` is one of this, whatever it is about: its data folder
and the other files of the test, answers whole and streamed, what is logged, rows of PostgreSQL.
"""

import gzip
import io
import logging
import zipfile
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from sqlalchemy import bindparam, text

from rag.llm.discovery import SECRET_FILE
from tests.openai_server import KEY

LEAST = 8  # characters: shorter ones stand anywhere
MOST_BYTES = 64 << 20  # of one file
MOST_FILES = 2_000  # of a test, beside a data folder
MOST_SECRETS = 60  # the latest, of applications that may still log
# Chroma writes its vectors from memory that it never cleared: what lay there before is in the file.
UNCLEARED = {"data_level0.bin", "header.bin", "length.bin", "link_lists.bin"}
SEED = "seeded-canary-7319"  # a source's password in every application's settings
SETTINGS = {".json", ".toml", ".env", ".yaml", ".yml"}  # that a test wrote: secrets belong there
latest: dict[bytes, None] = dict.fromkeys([KEY.encode(), SEED.encode()])
folders: list[Path] = []  # of applications
leaks: list[str] = []  # where a test could not be stopped: in another thread, in a log


def seeded(settings):
    """With a secret among them, whatever else is set: a password that no address names."""
    passwords = {**settings.sources.passwords, "canary": SEED}
    sources = settings.sources.model_validate(
        {**settings.sources.model_dump(exclude_unset=True), "passwords": passwords}
    )
    return settings.model_copy(update={"sources": sources})


def secrets_of(settings):
    """What nothing beside settings, environment and the one key file may hold."""
    auth, sources = settings.auth, settings.sources
    held = [*sources.passwords.values(), *settings.web.link_keys, settings.web.metrics_token]
    values = [KEY, settings.llm.api_key, *auth.tokens, *map(plain, held)]
    if auth.oidc is not None:
        values.append(plain(auth.oidc.client_secret))
    key = settings.data_dir / SECRET_FILE
    values += [key.read_text().strip()] if key.is_file() else []
    return [each.encode() for each in values if each and len(each) >= LEAST and ":" not in each]


def plain(value):
    return value.get_secret_value() if hasattr(value, "get_secret_value") else value or ""


def remember(secrets):
    """Logs and rows are not an application's own: they are looked through for all of these."""
    for secret in secrets:
        latest.pop(secret, None)
        latest[secret] = None
    for old in list(islice(latest, max(0, len(latest) - MOST_SECRETS))):
        del latest[old]


# ── Files ────────────────────────────────────────────────────────────────────────────────────


def leaks_in(folder, secrets):
    """Files with a secret in them, also compressed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [
        str(path.relative_to(folder))
        for path in files[:MOST_FILES]
        if path.name not in {SECRET_FILE, *UNCLEARED} and path.stat().st_size <= MOST_BYTES
        if holds(path.read_bytes(), secrets)
    ]


def holds(data, secrets):
    if any(secret in data for secret in secrets):
        return True
    if data[:2] == b"\x1f\x8b":
        return holds(gzip.decompress(data), secrets)
    if data[:4] == b"PK\x03\x04" and zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return any(holds(archive.read(name), secrets) for name in archive.namelist())
    return False


def watch_files(application):
    """Look through its data folder once it has stopped, and for its files beside it."""
    stop, settings = application.stop, application.settings
    remember(secrets_of(settings))
    folders.append(settings.data_dir)

    def stop_and_look():
        stop()
        secrets = secrets_of(settings)
        remember(secrets)
        found = leaks_in(settings.data_dir, secrets)
        assert found == [], f"a secret stands in {', '.join(found)}"

    application.stop = stop_and_look


def beside(folder):
    """Backups, exports, copies: what a test's folder holds, but for settings that it wrote."""
    found = leaks_in(folder, list(latest)) if folder and folder.is_dir() else []
    return [name for name in found if "." + name.rpartition(".")[2] not in SETTINGS]


# ── Answers ──────────────────────────────────────────────────────────────────────────────────


def watch_answers(app, settings):
    """Look through all that it answers, piece by piece where it is streamed."""

    def look(response):
        secrets = secrets_of(settings)
        remember(secrets)
        if response.is_streamed:
            response.response = looked_through(response.response, secrets)
        elif not response.direct_passthrough:
            refuse(response.get_data(), secrets)
        return response

    app.after_request_funcs.setdefault(None, []).insert(0, look)


def looked_through(pieces, secrets):
    """The same pieces; a secret may stand in two of them."""
    overlap, tail = max(map(len, secrets)), b""
    try:
        for piece in pieces:
            tail = tail[-overlap:] + (piece.encode() if isinstance(piece, str) else piece)
            refuse(tail, secrets)
            yield piece
    finally:
        if hasattr(pieces, "close"):
            pieces.close()


def refuse(data, secrets):
    """A server's thread ends with the error alone: the test hears of it at its end."""
    if any(secret in data for secret in secrets):
        leaks.append("an answer")
        raise AssertionError("a secret stands in an answer")


# ── Logs ─────────────────────────────────────────────────────────────────────────────────────


class Looking(logging.Handler):
    """Messages, and what the errors in them and behind them say."""

    def emit(self, record):
        try:
            said = record.getMessage()
        except (TypeError, ValueError):  # not its arguments: the other handlers say so
            said = f"{record.msg} {record.args}"
        error = record.exc_info[1] if record.exc_info else None
        while error is not None:
            said += f"\n{error}"
            error = error.__cause__ or error.__context__
        if any(secret in said.encode(errors="replace") for secret in list(latest)):
            leaks.append(f"a record of {record.name}")


class Watched:
    """One test."""

    def __init__(self):
        self.applications = len(folders)

    @contextmanager
    def logs(self):
        """Of every logger, also of those that hand nothing on."""
        handler, own = Looking(), logging.getLogger("rag")
        loggers = [logging.getLogger()] if own.propagate else [logging.getLogger(), own]
        for logger in loggers:
            logger.addHandler(handler)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(handler)

    def end(self, folder):
        """The last look, once all has stopped."""
        if folder and len(folders) > self.applications:
            leaks.extend(beside(folder))
        none_left()


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────


def tables_with(engine, secrets):
    """Tables of PostgreSQL with a secret in a row, as text or as bytes."""
    spelled = [each.decode() for each in secrets] + [each.hex() for each in secrets]
    found = "EXISTS (SELECT FROM unnest(CAST(:secrets AS text[])) s WHERE strpos(r::text, s) > 0)"
    with engine.connect() as connection:
        names = connection.execute(
            text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        ).scalars()
        each = [
            f"(SELECT '{name}' FROM \"{name}\" r WHERE {found} LIMIT 1)" for name in sorted(names)
        ]
        if not each:
            return []
        query = text(" UNION ALL ".join(each)).bindparams(bindparam("secrets", spelled))
        return list(connection.execute(query).scalars())


def watch_rows(engine):
    """At the end of a test on PostgreSQL."""
    leaks.extend(f"table {name}" for name in tables_with(engine, list(latest)))


def none_left():
    """What was found meanwhile, told once."""
    found = sorted(set(leaks))
    leaks.clear()
    assert found == [], f"a secret stands in {', '.join(found)}"
