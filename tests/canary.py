"""Secrets of a test's settings are looked for in all that its application wrote and answered.

Every test over `application_of` and `app_of` is one of this, whatever it is about.
"""

import gzip
import io
import zipfile

from rag.llm.connection import SECRET_FILE
from tests.openai_server import KEY

LEAST = 8  # characters: shorter ones stand anywhere
MOST_BYTES = 64 << 20  # of one file


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


def leaks_in(folder, secrets):
    """Files with a secret in them, also compressed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [
        str(path.relative_to(folder))
        for path in files
        if path.name != SECRET_FILE and path.stat().st_size <= MOST_BYTES
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
    """Look through its data folder once it has stopped."""
    stop = application.stop

    def stop_and_look():
        stop()
        settings = application.settings
        leaks = leaks_in(settings.data_dir, secrets_of(settings))
        assert leaks == [], f"a secret stands in {', '.join(leaks)}"

    application.stop = stop_and_look


def watch_answers(app, settings):
    """Look through all that it answers, unless it is streamed."""

    def look(response):
        if not response.is_streamed and not response.direct_passthrough:
            body = response.get_data()
            secret = next((each for each in secrets_of(settings) if each in body), None)
            assert secret is None, "a secret stands in an answer"
        return response

    app.after_request_funcs.setdefault(None, []).insert(0, look)
