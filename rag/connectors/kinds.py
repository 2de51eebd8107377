"""The kinds of sources, their addresses, and which of them users may add.

A package adds a kind by an entry point of the group `groundnote.sources`: its name is the URL
scheme, its value an `OpenSource`.

Addresses are kept as they are written, in the database and its backups. A secret in an address is
encrypted with the installation's key, `?token={sealed.…}`, before it is stored, and so are secrets
stored by earlier versions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import cast
from urllib.parse import quote, unquote, urlsplit

from pydantic import SecretStr

from rag.errors import Forbidden, SetupError, UserError, needs_extra
from rag.llm.discovery import SecretBox
from rag.seams import Connector, OpenSource, SourceOptions
from rag.settings import SourceSettings

GROUP_OF_KINDS = "groundnote.sources"
FOLDER, WEB, GIT, GITHUB, STORE = "folder", "web", "git", "github", "store"
OPENERS = {  # imported when a source of the kind is opened
    FOLDER: "rag.connectors.folder:open_folder",
    WEB: "rag.connectors.web:open_web",
    GIT: "rag.connectors.git:open_git",
    GITHUB: "rag.connectors.git.repository:open_github",
    STORE: "rag.connectors.stores:open_store",
}
EXTRAS = {  # the package that a kind needs, and the extra that installs it
    WEB: ("trafilatura", "web"),
    GIT: ("dulwich", "git"),
}
STORES = frozenset(
    "s3 gs gcs abfs abfss az sftp ssh webdav webdavs dav davs smb ftp ftps zip".split()  # noqa: SIM905
)
SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)(?:://|::)")
OF_THE_WEB = ("http", "https", "git+https")
LONGEST_ADDRESS = 2_000
LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\s]*)@")
PASSWORD_NAME = re.compile(r"\{([A-Za-z][\w-]{0,59})\}")  # named in the settings
SEALED = re.compile(r"\{sealed\.([\w=-]+)\}")  # encrypted
BLANK_IN_LOGIN = re.compile(r"://[^/?#]* [^/?#]*@")
IN_BRACKETS = re.compile(r"\[[^\]/]*\]")  # an IPv6 address
PARAMETER = re.compile(r"(?<=[?&;#])([^=?&;#\s]*=)([^&#\s]+)")
# Parameters of an address within a value.
INNER = re.compile(r"[?;]([^=?&;#\s]*=)(\{[\w.=-]+\})(?=[?;]|$)")
PARAMETER_NAME = re.compile(r"(?:^|[?&;#])([^=?&;#]*)=")
SECRET_NAME = re.compile(
    r"token|secret|passw|pwd|signature|credential|session|bearer|jwt|webhook|keys?(?![a-z])"
    r"|auth(?!ors?(?![a-z]))"
    r"|(?<![a-z])(?:pass|sig|sas|sid|pat|pin|otp|hmac|code|hash|ticket)(?![a-z])",
    re.IGNORECASE,
)
# Too random to be written by hand.
RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{24}")
SHORTEST_WORD = 6  # a shorter secret is hidden only in the place of a secret
# Where a login without a password may be a token.
BY_TOKEN = ("http", "https", "git+http", "git+https")


def kind_of(address: str) -> str:
    """Return the kind of source of an address. Raises UserError."""
    scheme = scheme_of(address)
    if scheme.startswith("git+") or scheme == "git" or _is_repository(address, scheme):
        return GIT
    if scheme in ("", "file"):
        return FOLDER
    if scheme in ("http", "https"):
        return WEB
    if scheme == GITHUB:
        return GITHUB
    if scheme in STORES:
        return STORE
    if scheme in added_kinds():
        return scheme
    schemes = ", ".join(sorted(["https", "git+https", "file", GITHUB, *STORES, *added_kinds()]))
    raise UserError(
        f"{scheme}:// is no kind of source. Name a folder, or an address of one of: {schemes}."
    )


def is_chain(address: str) -> bool:
    """Return whether an address is an fsspec chain such as `zip::https://…`."""
    return "::" in IN_BRACKETS.sub("", address)


def scheme_of(address: str) -> str:
    """Return the scheme in lower case; "" for a plain path."""
    match = SCHEME.match(address)
    return match[1].lower() if match else ""


def _is_repository(address: str, scheme: str) -> bool:
    is_one = address.rstrip("/").endswith(".git") or ".git#" in address or ".git@" in address
    return is_one and scheme in ("", "http", "https", "ssh", "file")


def added_kinds() -> set[str]:
    """Return the schemes that installed packages add."""
    return {point.name for point in entry_points(group=GROUP_OF_KINDS)}


def open_source(address: str, options: SourceOptions) -> Connector:
    """Open a source. Raises UserError, SetupError for a missing package, and SourceAway."""
    kind = kind_of(address)
    package, extra = EXTRAS.get(kind, ("", ""))
    if package and find_spec(package) is None:
        raise SetupError(needs_extra(f"A source of the kind {kind}", extra))
    try:
        return _opener(kind)(address, options)
    except ImportError as error:
        raise SetupError(
            f"{scheme_of(address)}:// needs a package that is not installed ({error}). Install it "
            "beside Groundnote."
        ) from error


def _opener(kind: str) -> OpenSource:
    if kind in OPENERS:
        module, _, name = OPENERS[kind].partition(":")
        return cast(OpenSource, getattr(import_module(module), name))
    return cast(OpenSource, next(iter(entry_points(group=GROUP_OF_KINDS, name=kind))).load())


def normalised_address(address: str) -> str:
    """Return an address as it is stored: a folder as its full path. Raises UserError."""
    plain = address.strip()
    if not plain or len(plain) > LONGEST_ADDRESS or not plain.isprintable():
        raise UserError(
            f"This is no address of a source: it is empty, longer than {LONGEST_ADDRESS:,} "
            "characters, or holds signs that are not printed. Name a folder, or an address such as "
            "https://example.com/docs."
        )
    if kind_of(plain) == FOLDER:
        return str(folder_of(plain))
    try:
        parts = urlsplit(plain)
        if not is_chain(plain) and scheme_of(plain) != GITHUB:  # owner:name
            parts.port  # noqa: B018  (raises)
        if " " in parts.netloc + parts.query + parts.fragment or BLANK_IN_LOGIN.search(plain):
            raise ValueError("a blank")
    except ValueError as error:  # without the address, which may hold a password
        raise UserError(
            "The host or port of this address cannot be read. In a name or password write @ as "
            "%40, : as %3A, / as %2F, # as %23 and a blank as %20."
        ) from error
    return plain


def folder_of(address: str) -> Path:
    """Return the folder of a plain path or a file:// URL."""
    path = unquote(urlsplit(address).path) if scheme_of(address) == "file" else address
    return Path(path).expanduser().absolute()


def masked(address: str) -> str:
    """Return an address, or a text with addresses, with passwords and tokens replaced by `…`."""
    text = LOGIN.sub(_without_password, address)
    return _with_secrets(text, lambda value: value if PASSWORD_NAME.fullmatch(value) else "…")


def _with_secrets(address: str, change: Callable[[str], str]) -> str:
    """Apply `change` to each value in the place of a secret."""

    def changed(match: re.Match[str]) -> str:
        return match[1] + change(match[2]) if _is_secret(match[0]) else match[0]

    return PARAMETER.sub(changed, address)


def _is_secret(parameter: str) -> bool:
    """Return whether a parameter is secret by name or by what its value holds, or looks random."""
    plain = unquote(parameter)
    names = PARAMETER_NAME.findall(plain)
    is_named = any(SECRET_NAME.search(name) for name in names)
    value = parameter.partition("=")[2]
    return is_named or bool(LOGIN.search(plain) or RANDOM.search(value))


def _without_password(match: re.Match[str]) -> str:
    scheme, login = match[1], match[2]
    secret = password_in(match[0])
    if not secret or PASSWORD_NAME.fullmatch(secret):
        return match[0]
    return f"{scheme}://{login.removesuffix(secret)}…@"


def password_in(address: str) -> str:
    """Return the password or token of an address, or the `{name}` of one; "" if there is none."""
    match = LOGIN.search(address)
    if match is None or match[1].lower() == GITHUB:  # owner:name
        return ""
    user, colon, password = match[2].partition(":")
    return password if colon else user if match[1].lower() in BY_TOKEN else ""


def password_named(address: str) -> str:
    """Return the name in `https://ada:{wiki}@host/`, of a password in the settings; or ""."""
    match = PASSWORD_NAME.fullmatch(password_in(address))
    return match[1] if match else ""


def passwords_in_query(address: str) -> list[str]:
    """Return the names in `https://host/feed?token={wiki}`, in the place of secrets only."""
    if scheme_of(address) not in (*BY_TOKEN, GITHUB):
        return []
    names: list[str] = []

    def note(value: str) -> str:
        if match := PASSWORD_NAME.fullmatch(value):
            names.append(match[1])
        return value

    _with_secrets(address, lambda value: _with_innermost(value, note))
    return names


def _with_innermost(value: str, change: Callable[[str], str]) -> str:
    """Change a value, and within it what is named or encrypted in the place of a secret."""

    def changed(match: re.Match[str]) -> str:
        parameter = match[1] + match[2]
        return f"{match[0][0]}{match[1]}{change(match[2])}" if _is_secret(parameter) else match[0]

    return INNER.sub(changed, change(value))


def without_secrets(url: str) -> str:
    """Return a URL without the parts of its query that are secret."""
    parsed = urlsplit(url)
    parts = [part for part in parsed.query.split("&") if not _is_secret(part)]
    fragment = "" if _is_secret(parsed.fragment) else parsed.fragment
    path = ";".join(part for part in parsed.path.split(";") if not _is_secret(part))
    return parsed._replace(path=path, query="&".join(parts), fragment=fragment).geturl()


def without_login(url: str) -> str:
    """Return a URL without its login."""
    return LOGIN.sub(r"\1://", url)


def short_name(address: str) -> str:
    """Return the last part of an address, a prefix for document names that are taken already."""
    parsed = urlsplit(address) if "://" in address else None
    parts = [part for part in (parsed.path if parsed else address).split("/") if part]
    last = parts[-1] if parts else (parsed.hostname if parsed else "") or "source"
    return unquote(last).removesuffix(".git")[:60]


def check_open(address: str, settings: SourceSettings) -> None:
    """Raise Forbidden for a source that needs the server's own rights.

    The settings may allow such a source to every manager of a collection.
    """
    # A password of the settings is sent only where they allow it.
    is_known = not password_named(address) and not passwords_in_query(address)
    begins = ".." not in unquote(address) and _begins(without_login(address), settings.stores)
    if not is_chain(address) and (begins or (is_known and _is_open(address, settings))):
        return
    kind = kind_of(address)
    if kind == FOLDER:
        text = "Folders are added by whoever runs the server: groundnote source add FOLDER, or"
        raise Forbidden(f"{text} sources.folders names those that may be added here.")
    if is_known and kind in added_kinds():
        raise Forbidden(
            f"{kind}:// is read by a package that was installed beside Groundnote. Whoever runs "
            f"the server adds it: groundnote source add ADDRESS, or names {kind} in sources.kinds."
        )
    raise Forbidden(
        "This is read with what the server may read, so whoever runs it adds it: groundnote source "
        "add ADDRESS, or sources.stores names the beginnings of addresses that may be added here."
    )


def _is_open(address: str, settings: SourceSettings) -> bool:
    kind = kind_of(address)
    if kind == FOLDER:
        folder = folder_of(address).resolve()
        return any(folder.is_relative_to(root.resolve()) for root in settings.folders)
    return scheme_of(address) in OF_THE_WEB or (kind in added_kinds() and kind in settings.kinds)


def _begins(address: str, stores: Sequence[str]) -> bool:
    return any(address == store or address.startswith(store.rstrip("/") + "/") for store in stores)


HOW = (
    "Whoever runs the server puts it into the settings as sources.passwords, such as "
    '{"wiki": "…"} or GROUNDNOTE_SOURCES__PASSWORDS={"wiki":"…"}; the address then says '
    "https://ada:{wiki}@host/ or https://host/feed?token={wiki}."
)


def check_no_password(address: str) -> None:
    """Raise UserError for an address with a password in plain text."""
    if password_in(address) and not password_named(address):
        raise UserError(f"A password is not written into an address, which is kept as it is. {HOW}")
    # Copied from another source, its secret would be sent to this address.
    if SEALED.search(address):
        raise UserError(f"What was sealed for one source is not opened for another. {HOW}")


def sealed(address: str, box: SecretBox) -> str:
    """Return an address with its secrets encrypted by the installation's key."""

    def seal(match: re.Match[str]) -> str:
        rest = match[1] + INNER.sub("", match[2])
        return match[1] + _sealed_around(match[2], box) if _is_secret(rest) else match[0]

    made = PARAMETER.sub(seal, address)
    password, login = password_in(made), LOGIN.search(made)
    if not password or login is None:
        return made
    start = login.end() - len(f"{password}@")
    return f"{made[:start]}{_sealed(password, box)}@{made[login.end() :]}"


def _sealed_around(value: str, box: SecretBox) -> str:
    """Encrypt a value except for parameters in it that are encrypted or named already."""
    made, start = "", 0
    for inner in INNER.finditer(value):
        made += _sealed(value[start : inner.start()], box) + inner[0]
        start = inner.end()
    return made + _sealed(value[start:], box)


def _sealed(value: str, box: SecretBox) -> str:
    is_named = not value or PASSWORD_NAME.fullmatch(value) or SEALED.fullmatch(value)
    return value if is_named else f"{{sealed.{box.close(value)}}}"


@dataclass(frozen=True, slots=True)
class OpenedAddress:
    """An address with its secrets, and the placeholders that replace them wherever it is stored."""

    address: str = field(repr=False)
    # (value, placeholder in braces).
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def opened_address(
    address: str, passwords: Mapping[str, SecretStr], box: SecretBox
) -> OpenedAddress:
    """Return an address with its plain secrets, never to be shown. Raises UserError, SetupError."""
    secrets: dict[str, str] = {}

    def unseal(match: re.Match[str]) -> str:
        # Earlier versions encrypted nested values twice.
        value = SEALED.sub(unseal, box.open(match[1]))
        secrets[value] = match[0]
        return value

    # Names first: no check has been made of where names inside encrypted values may be sent.
    whole = SEALED.sub(unseal, with_password(address, passwords))
    for name in dict.fromkeys([password_named(address), *passwords_in_query(address)]):
        if name:
            secrets[quote(passwords[name].get_secret_value(), safe="")] = f"{{{name}}}"
    return OpenedAddress(whole, tuple(secrets.items()))


def hidden(text: str, secrets: tuple[tuple[str, str], ...]) -> str:
    """Replace each secret in a text by its placeholder, however it is encoded.

    A short secret, which may be part of any word, is replaced only as a whole parameter or login.
    """
    placeholders = {unquote(value): name for value, name in secrets if value}
    values = tuple(sorted(placeholders, key=len, reverse=True))
    if not values:
        return text
    names = [placeholders[value] for value in values]
    return _spellings(values).sub(lambda match: names[cast(int, match.lastindex) - 1], text)


@lru_cache(maxsize=64)
def _spellings(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """Match each secret as a group of its own, plain or encoded once or twice.

    The encodings are those of URLs, HTML and JSON.
    """
    patterns = []
    for secret in secrets:
        spelled = "".join(map(_spelled, secret))
        if len(secret) < SHORTEST_WORD:
            is_value, is_login = r"(?:(?<==)|(?<=%3[Dd]))", r"(?<=[:/])"
            spelled = rf"{is_value}{spelled}(?=[&#;?\s\"'<>]|$)|{is_login}{spelled}(?=@)"
        patterns.append(f"({spelled})")
    return re.compile("|".join(patterns))


def _spelled(sign: str) -> str:
    octets = "".join(f"%(?:25)*(?i:{octet:02x})" for octet in sign.encode())
    code = ord(sign)
    entity = f"&(?:amp;)?#(?:0*{code}|(?i:x0*{code:x}));"
    literal = re.escape(sign) if sign != " " else "[ +]"
    ways = [octets, entity, rf"\\+u(?i:{code:04x})", re.escape(escape(sign)), rf"\\*{literal}"]
    return f"(?:{'|'.join(ways)})"


def revealed(text: str, secrets: tuple[tuple[str, str], ...]) -> str:
    """Put the secrets back into a text in which they were hidden."""
    values = {name: value for value, name in secrets if value}
    if not values:
        return text
    names = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))
    return re.sub(names, lambda match: values[match[0]], text)


def with_password(address: str, passwords: Mapping[str, SecretStr]) -> str:
    """Put passwords into an address, never to be shown. Raises UserError for an unknown name."""
    in_login = password_named(address)
    for name in dict.fromkeys([in_login, *passwords_in_query(address)]):
        if name and name not in passwords:
            raise UserError(f"There is no password {name!r} in the settings. {HOW}")

    def secret_of(name: str) -> str:
        return quote(passwords[name].get_secret_value(), safe="")

    def put_in(value: str) -> str:
        match = PASSWORD_NAME.fullmatch(value)
        return secret_of(match[1]) if match else value

    with_query = address
    if passwords_in_query(address):
        with_query = _with_secrets(address, lambda value: _with_innermost(value, put_in))
    return with_query.replace(f"{{{in_login}}}", secret_of(in_login), 1) if in_login else with_query
