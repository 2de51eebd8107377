"""Secrets of all kinds are looked for in all that a test's application wrote, said and answered.

Whatever makes an application, or a web app, makes one with a secret in each setting that may hold
one (`SEEDS`); nobody has to ask for it. Looked through are its data folder and the other files of
the test, answers whole and streamed, what commands print, what is logged, what model servers are
sent, rows of PostgreSQL.
"""

import gzip
import io
import logging
import os
import typing
import zipfile
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr
from sqlalchemy import bindparam, text

from rag.llm.discovery import SECRET_FILE, SECRET_VARIABLE
from rag.settings import OidcSettings

LEAST = 8  # characters: shorter ones stand anywhere
MOST_BYTES = 64 << 20  # of one file
MOST_FILES = 2_000  # of a test, beside a data folder
MOST_SECRETS = 60  # the latest, of applications that may still log
# Chroma writes its vectors from memory that it never cleared: what lay there before is in the file.
UNCLEARED = {"data_level0.bin", "header.bin", "length.bin", "link_lists.bin"}
SETTINGS = {".json", ".toml", ".env", ".yaml", ".yml"}  # that a test wrote: secrets belong there
SEED = "seeded-password-7319"  # of a source
SEEDS = {
    "auth.oidc.client_secret": "seeded-client-7319",
    "auth.tokens": "seeded-token-7319",
    "documents.reader_api_key": "seeded-reader-7319",
    "sources.passwords": SEED,
    "web.link_keys": "seeded-link-7319",
    "web.metrics_token": "seeded-metrics-7319",
}
LOGIN = "https://login.invalid/.well-known/openid-configuration"
KEY = "sk-very-secret-1234567890"  # of the model servers of tests
latest: dict[bytes, None] = dict.fromkeys(each.encode() for each in (KEY, *SEEDS.values()))
folders: list[Path] = []  # of applications
leaks: list[str] = []  # where a test could not be stopped: in another thread, in a log


# ── What is secret ───────────────────────────────────────────────────────────────────────────


def secret_fields(model, path=""):
    """The settings of a model that pydantic knows to be secret, by their dotted names."""
    for name, field in model.model_fields.items():
        kinds = set(leaves(field.annotation))
        if SecretStr in kinds:
            yield path + name
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from secret_fields(kind, f"{path}{name}.")


def leaves(annotation):
    """What a type is made of: `SecretStr` of `dict[str, SecretStr] | None`."""
    inner = typing.get_args(annotation)
    return [leaf for each in inner for leaf in leaves(each)] if inner else [annotation]


class Unused(SecretStr):
    """It is there, and whoever asks whether one is set is told that none is."""

    def __bool__(self):
        return False


class UnusedKeys(tuple):
    """As well."""

    __slots__ = ()

    def __bool__(self):
        return False


def seeded(settings):
    """With a secret of each kind that changes nothing; those that a test sets itself stay."""
    secret = {kind: Unused(value) for kind, value in SEEDS.items()}
    passwords = {**settings.sources.passwords, "canary": secret["sources.passwords"]}
    settings = changed(settings, "sources", passwords=passwords)
    settings = filled(settings, "documents", reader_api_key=secret["documents.reader_api_key"])
    settings = filled(settings, "web", metrics_token=secret["web.metrics_token"])
    settings = filled(settings, "web", link_keys=UnusedKeys([secret["web.link_keys"]]))
    if settings.auth.mode == "single":  # neither is looked at there
        client = secret["auth.oidc.client_secret"]
        oidc = OidcSettings(discovery_url=LOGIN, client_id="canary", client_secret=client)
        settings = filled(settings, "auth", oidc=oidc, tokens={SEEDS["auth.tokens"]: "canary"})
    return settings


def filled(settings, section, **values):
    """Where nothing is set."""
    own = getattr(settings, section)
    return changed(settings, section, **{k: v for k, v in values.items() if not getattr(own, k)})


def changed(settings, section, **values):
    other = getattr(settings, section).model_copy(update=values)
    return settings.model_copy(update={section: other})


def secrets_of(settings):
    """What nothing beside settings, environment and the one key file may hold."""
    key = settings.data_dir / SECRET_FILE
    values = [KEY, settings.llm.api_key, os.environ.get(SECRET_VARIABLE), *settings.auth.tokens]
    values += [key.read_text().strip()] if key.is_file() else []
    values += secrets_in(settings)
    return [each.encode() for each in values if each and len(each) >= LEAST and ":" not in each]


def secrets_in(value):
    """Those that pydantic knows, and the passwords of addresses."""
    if isinstance(value, SecretStr):
        return [value.get_secret_value()]
    if isinstance(value, BaseModel):
        return secrets_in([getattr(value, name) for name in type(value).model_fields])
    if isinstance(value, dict):
        return secrets_in(list(value.values()))
    if isinstance(value, (list, tuple)):
        return [secret for each in value for secret in secrets_in(each)]
    return [password_of(value)] if isinstance(value, str) and "@" in value else []


def password_of(address):
    parts = urlsplit(address)
    return "" if parts.password == parts.username else unquote(parts.password or "")


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


def look_through(settings):
    """The data folder of an application that has stopped."""
    secrets = secrets_of(settings)
    remember(secrets)
    found = leaks_in(settings.data_dir, secrets)
    assert found == [], f"a secret stands in {', '.join(found)}"


def beside(folder):
    """Backups, exports, copies: what a test's folder holds, but for settings that it wrote."""
    found = leaks_in(folder, list(latest)) if folder and folder.is_dir() else []
    return [name for name in found if "." + name.rpartition(".")[2] not in SETTINGS]


# ── Answers ──────────────────────────────────────────────────────────────────────────────────


def watch_answers(app, application):
    """Look through all that it answers, piece by piece where it is streamed."""

    def look(response):
        secrets = secrets_of(application.settings)
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


# ── Whoever makes an application, or prints ──────────────────────────────────────────────────


def watch_all():
    """Each application and web app that is made from now on, also by a command."""
    import rag.web
    from rag.wiring.application import Application

    begin, stop, configure = Application.__init__, Application.stop, rag.web.configure
    if hasattr(begin, "__wrapped__"):
        return

    @wraps(begin)
    def begin_seeded(application, settings, *arguments, **named):
        settings = seeded(settings)
        remember(secrets_of(settings))
        folders.append(settings.data_dir)
        begin(application, settings, *arguments, **named)

    @wraps(stop)
    def stop_and_look(application):
        stop(application)
        look_through(application.settings)

    @wraps(configure)
    def configure_and_watch(app, application):
        configure(app, application)
        watch_answers(app, application)

    Application.__init__, Application.stop = begin_seeded, stop_and_look
    rag.web.configure = configure_and_watch


def watch_commands():
    """What they print in a test."""
    from click.testing import CliRunner

    invoke = CliRunner.invoke

    @wraps(invoke)
    def invoke_and_look(*arguments, **named):
        result = invoke(*arguments, **named)
        if any(secret.decode() in result.output for secret in list(latest)):
            leaks.append("what a command printed")
        return result

    CliRunner.invoke = invoke_and_look


def look_at_request(body):
    """What a model server is sent: the key stands in a header."""
    if any(secret in body for secret in list(latest)):
        leaks.append("a request to a model")


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
