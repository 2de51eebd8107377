"""Secrets of sources: an address names one, `https://ada:{wiki}@host/`, the settings hold it.

Addresses are kept as they are written, in the database and its backups. A secret that is written
out is sealed with the installation's key, `?token={sealed.…}`, before it is kept, and so is one of
earlier days.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus, unquote

from pydantic import SecretStr

from rag.connectors.kinds import (
    LOGIN,
    NAMED_PASSWORD,
    SEALED,
    SECRET,
    password_in,
    password_named,
    passwords_in_query,
)
from rag.errors import UserError
from rag.llm.connection import SecretBox

HOW = (
    "Whoever runs the server puts it into the settings as sources.passwords, such as "
    '{"wiki": "…"} or GROUNDNOTE_SOURCES__PASSWORDS={"wiki":"…"}; the address then says '
    "https://ada:{wiki}@host/ or https://host/feed?token={wiki}."
)


def check_no_password(address: str) -> None:
    """Raises UserError for one that is written out."""
    if password_in(address) and not password_named(address):
        raise UserError(f"A password is not written into an address, which is kept as it is. {HOW}")


def sealed(address: str, box: SecretBox) -> str:
    """As it is kept: what is secret of it, only whoever has the installation's key can read."""

    def seal(match: re.Match[str]) -> str:
        value = match[0].removeprefix(match[1])
        return f"{match[1]}{_sealed(value, box)}"

    made = SECRET.sub(seal, address)
    password = password_in(made)
    login = LOGIN.match(made)
    if not password or login is None:
        return made
    before = login[0].removesuffix(f"{password}@")
    return f"{before}{_sealed(password, box)}@{made[login.end() :]}"


def _sealed(value: str, box: SecretBox) -> str:
    is_named = NAMED_PASSWORD.fullmatch(value) or SEALED.fullmatch(value)
    return value if is_named else f"{{sealed.{box.close(value)}}}"


@dataclass(frozen=True, slots=True)
class OpenedAddress:
    """An address as it is asked, and how what it holds is written wherever that is kept."""

    address: str = field(repr=False)
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # value, its name in {}


def opened_address(
    address: str, passwords: Mapping[str, SecretStr], box: SecretBox
) -> OpenedAddress:
    """What is opened; told to nobody. Raises UserError and SetupError."""
    secrets: dict[str, str] = {}

    def unseal(match: re.Match[str]) -> str:
        value = box.open(match[1])
        secrets[value] = match[0]
        return value

    whole = with_password(SEALED.sub(unseal, address), passwords)
    for name in dict.fromkeys([password_named(address), *passwords_in_query(address)]):
        if name:
            secrets[quote(passwords[name].get_secret_value(), safe="")] = f"{{{name}}}"
    return OpenedAddress(whole, tuple(secrets.items()))


def hidden(text: str, secrets: tuple[tuple[str, str], ...]) -> str:
    """A text that is kept: each secret by its name, however it is spelled."""
    for value, name in secrets:
        plain = unquote(value)
        for spelled in dict.fromkeys((value, plain, quote_plus(plain))):
            text = text.replace(spelled, name) if spelled else text
    return text


def revealed(text: str, secrets: tuple[tuple[str, str], ...]) -> str:
    """What was hidden, as it is asked."""
    for value, name in secrets:
        text = text.replace(name, value)
    return text


def with_password(address: str, passwords: Mapping[str, SecretStr]) -> str:
    """What is opened; told to nobody. Raises UserError for a name that no password has."""
    in_login = password_named(address)
    for name in dict.fromkeys([in_login, *passwords_in_query(address)]):
        if name and name not in passwords:
            raise UserError(f"There is no password {name!r} in the settings. {HOW}")

    def held(name: str) -> str:
        return quote(passwords[name].get_secret_value(), safe="")

    def put_in(match: re.Match[str]) -> str:
        named = NAMED_PASSWORD.fullmatch(match[0].removeprefix(match[1]))
        return match[1] + held(named[1]) if named else match[0]

    with_query = SECRET.sub(put_in, address) if passwords_in_query(address) else address
    return with_query.replace(f"{{{in_login}}}", held(in_login), 1) if in_login else with_query
