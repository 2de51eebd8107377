"""Passwords of sources: an address names one, `https://ada:{wiki}@host/`, the settings hold it.

Addresses are kept as they are written, in the database and its backups, so no password is.
"""

from collections.abc import Mapping
from urllib.parse import quote

from pydantic import SecretStr

from rag.errors import UserError
from rag.sources.kinds import password_in, password_named

HOW = (
    "Whoever runs the server puts it into the settings as sources.passwords, such as "
    '{"wiki": "…"} or GROUNDNOTE_SOURCES__PASSWORDS={"wiki":"…"}; the address then says '
    "https://ada:{wiki}@host/."
)


def check_no_password(address: str) -> None:
    """Raises UserError for one that is written out."""
    if password_in(address) and not password_named(address):
        raise UserError(f"A password is not written into an address, which is kept as it is. {HOW}")


def with_password(address: str, passwords: Mapping[str, SecretStr]) -> str:
    """What is opened; told to nobody. Raises UserError for a name that no password has."""
    name = password_named(address)
    if not name:
        return address
    if name not in passwords:
        raise UserError(f"There is no password {name!r} in the settings. {HOW}")
    return address.replace(f"{{{name}}}", quote(passwords[name].get_secret_value(), safe=""), 1)
