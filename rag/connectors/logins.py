"""Passwords of sources: an address names one, `https://ada:{wiki}@host/`, the settings hold it.

Addresses are kept as they are written, in the database and its backups, so no password is.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote

from pydantic import SecretStr

from rag.connectors.kinds import (
    NAMED_PASSWORD,
    SECRET,
    password_in,
    password_named,
    passwords_in_query,
)
from rag.errors import UserError

HOW = (
    "Whoever runs the server puts it into the settings as sources.passwords, such as "
    '{"wiki": "…"} or GROUNDNOTE_SOURCES__PASSWORDS={"wiki":"…"}; the address then says '
    "https://ada:{wiki}@host/ or https://host/feed?token={wiki}."
)


def check_no_password(address: str) -> None:
    """Raises UserError for one that is written out."""
    if password_in(address) and not password_named(address):
        raise UserError(f"A password is not written into an address, which is kept as it is. {HOW}")


def with_password(address: str, passwords: Mapping[str, SecretStr]) -> str:
    """What is opened; told to nobody. Raises UserError for a name that no password has."""
    in_login = password_named(address)
    for name in dict.fromkeys([in_login, *passwords_in_query(address)]):
        if name and name not in passwords:
            raise UserError(f"There is no password {name!r} in the settings. {HOW}")

    def held(name: str) -> str:
        return quote(passwords[name].get_secret_value(), safe="")

    def put_in(found: re.Match[str]) -> str:
        named = NAMED_PASSWORD.fullmatch(found[0].removeprefix(found[1]))
        return found[1] + held(named[1]) if named else found[0]

    with_query = SECRET.sub(put_in, address) if passwords_in_query(address) else address
    return with_query.replace(f"{{{in_login}}}", held(in_login), 1) if in_login else with_query
