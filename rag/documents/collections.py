"""Collections and their access rights: the one place that decides what an owner may read."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    Select,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from rag import db
from rag.db.audit_trail import record
from rag.errors import Conflict, NotFound, UserError
from rag.records import DEFAULT_COLLECTION, EVERYTHING, Collection, Readable, Right

LONGEST_NAME = 100
LONGEST_MEMBER = 200
ID_DIGITS = 15
As = Callable[[str], frozenset[str]]  # from an owner to the members that it counts as


@dataclass(frozen=True, slots=True)
class CollectionOf:
    """A collection as one owner sees it."""

    collection: Collection
    right: Right
    document_count: int

    @property
    def id(self) -> str:
        return self.collection.id

    @property
    def name(self) -> str:
        return self.collection.name


@dataclass(frozen=True, slots=True)
class Callers:
    """How owners relate: groups, administrators, and whether everybody is one owner."""

    are_one: bool = True  # everybody is the same owner and may do everything
    counts_as: As = lambda owner: frozenset({owner})  # itself, and its groups as "group:…"
    admins: frozenset[str] = frozenset()  # owners and groups
    managers: frozenset[str] = frozenset()

    def is_admin(self, owner: str) -> bool:
        """Return whether an owner may change everything; where everybody is one owner, all may."""
        return self.are_one or not self.admins.isdisjoint(self.counts_as(owner))

    def is_manager(self, owner: str) -> bool:
        """Return whether an owner may create collections."""
        managers = self.admins | self.managers
        return self.are_one or not managers.isdisjoint(self.counts_as(owner))


class Collections:
    """All collections; every call reads the rights anew from the database."""

    def __init__(self, engine: Engine, callers: Callers | None = None) -> None:
        self._engine = engine
        self.callers = callers or Callers()

    # ── Who may what ─────────────────────────────────────────────────────────────────────────

    def readable(self, owner: str) -> Readable:
        """Return the collections in which this owner may find, list, count and open documents."""
        if self.callers.are_one:
            return EVERYTHING
        return Readable(frozenset(self.rights(owner)))

    def right(self, owner: str, collection_id: str) -> Right:
        """Return an owner's right to a collection; NONE where there is no such collection."""
        return self.rights(owner, collection_id).get(collection_id, Right.NONE)

    def readable_by(self, owner: str) -> list[CollectionOf]:
        """Return the collections that an owner may read, by name, with their document counts."""
        rights, place = self.rights(owner), db.documents.c.collection_id
        query = select(db.collections).where(db.collections.c.id.in_(rights))
        counting = select(place, func.count()).where(place.in_(rights)).group_by(place)
        with db.reading(self._engine) as connection:
            results = [
                Collection(row.id, row.name, row.owner, Right(row.everybody))
                for row in connection.execute(query)
            ]
            counts = {row[0]: row[1] for row in connection.execute(counting)}
        results.sort(key=lambda one: (one.id != DEFAULT_COLLECTION, one.name.casefold(), one.id))
        return [CollectionOf(one, rights[one.id], counts.get(one.id, 0)) for one in results]

    def collection(self, owner: str, collection_id: str) -> CollectionOf:
        """Return one collection. Raises NotFound, also where the owner may not read it."""
        for collection in self.readable_by(owner):
            if collection.id == collection_id:
                return collection
        raise NotFound(f"There is no collection {collection_id[:60]!r}.")

    def find(self, owner: str, wanted: str) -> CollectionOf:
        """Return a collection by its id or its name in any case. Raises NotFound and UserError."""
        collections, name = self.readable_by(owner), wanted.strip().casefold()
        matching = [one for one in collections if one.id == wanted]
        matching = matching or [one for one in collections if one.name.casefold() == name]
        if len(matching) == 1:
            return matching[0]
        if matching:
            ids = ", ".join(collection.id for collection in matching)
            raise UserError(f"Several collections are called {wanted!r}: name one of {ids}.")
        names = ", ".join(collection.name for collection in collections) or "none"
        raise NotFound(f"There is no collection {wanted[:60]!r}. There are: {names}.")

    def rights(self, owner: str, collection_id: str | None = None) -> dict[str, Right]:
        """Return the owner's rights by collection id, without collections that it may not read.

        The empty owner stands for whoever runs the server and may do everything.
        """
        rules_all = not owner or self.callers.is_admin(owner)
        query = _rights_query(of_one=collection_id is not None, of_all=rules_all)
        members = sorted(self.callers.counts_as(owner))
        values = {"owner": owner, "members": members, "its_id": collection_id}
        with db.reading(self._engine) as connection:
            return {
                row[0]: Right.MANAGE
                if rules_all or row[1] == owner
                else Right(max(row[2], row[3] or 0))
                for row in connection.execute(query, values)
            }

    # ── Changing ─────────────────────────────────────────────────────────────────────────────

    def create(self, owner: str, name: str, *, everybody: Right = Right.NONE) -> Collection:
        """Create a collection of this owner. Raises UserError and Conflict."""
        collection_id = str(10**ID_DIGITS + secrets.randbelow(9 * 10**ID_DIGITS))
        right = _checked_everybody(everybody)
        collection = Collection(collection_id, _checked_name(name), owner, right)
        values = asdict(collection) | {"everybody": int(right)}
        try:
            with db.writing(self._engine) as connection:
                connection.execute(insert(db.collections).values(values))
                record(connection, "collection.created", f"{collection.id} {collection.name}")
        except IntegrityError as error:
            raise _name_taken(collection.name) from error
        return collection

    def change(
        self,
        collection_id: str,
        *,
        name: str | None = None,
        everybody: Right | None = None,
        members: Mapping[str, Right] | None = None,
    ) -> None:
        """Change a collection; None leaves a value as it is.

        Raises NotFound, UserError and Conflict.
        """
        values: dict[str, object] = {}
        if name is not None:
            values["name"] = _checked_name(name)
        if everybody is not None:
            values["everybody"] = int(_checked_everybody(everybody))
        try:
            with db.writing(self._engine) as connection:
                is_it = db.collections.c.id == collection_id
                before = connection.execute(select(db.collections).where(is_it)).first()
                if before is None:
                    raise NotFound(f"There is no collection {collection_id[:60]!r}.")
                if values:
                    connection.execute(update(db.collections).where(is_it).values(**values))
                    _record_changes(connection, before, values)
                if members is not None:
                    _replace_members(connection, collection_id, members)
        except IntegrityError as error:
            raise _name_taken(name or "") from error

    def members(self, collection_id: str) -> dict[str, Right]:
        """Return the rights given to members, by name; only for those who manage the collection."""
        query = (
            select(db.collection_members)
            .where(db.collection_members.c.collection_id == collection_id)
            .order_by(db.collection_members.c.member)
        )
        with db.reading(self._engine) as connection:
            return {row.member: Right(row.right) for row in connection.execute(query)}

    def delete(self, collection_id: str) -> None:
        """Delete an empty collection. Raises NotFound and Conflict."""
        if collection_id == DEFAULT_COLLECTION:
            raise Conflict("This collection stays: it is where documents are that have no other.")
        is_it = db.collections.c.id == collection_id
        in_it = db.documents.c.collection_id == collection_id
        its_sources = db.document_sources.c.collection_id == collection_id
        its_members = db.collection_members.c.collection_id == collection_id
        with db.writing(self._engine) as connection:
            if count := connection.scalar(select(func.count()).where(in_it)):
                raise Conflict(f"There are {count} documents in it. Move or delete them first.")
            if connection.scalar(select(func.count()).where(its_sources)):
                raise Conflict("It is kept in step with a source. Remove that first.")
            connection.execute(delete(db.collection_members).where(its_members))
            name = connection.scalar(select(db.collections.c.name).where(is_it))
            if connection.execute(delete(db.collections).where(is_it)).rowcount == 0:
                raise NotFound(f"There is no collection {collection_id[:60]!r}.")
            record(connection, "collection.deleted", f"{collection_id} {name}")


def groups_at_login(engine: Engine, owner: str) -> list[str]:
    """Return the groups that a login provider named at the owner's last login, until it expires."""
    newest = (
        select(db.logins.c.groups)
        .where(db.logins.c.owner == owner, db.logins.c.expires_at > datetime.now(UTC))
        .order_by(db.logins.c.created_at.desc())
        .limit(1)
    )
    with db.reading(engine) as connection:
        return connection.execute(newest).scalar() or []


@cache
def _rights_query(*, of_one: bool, of_all: bool) -> Select[Any]:
    """Build the rights query once: it runs for each file and is slower to build than to run."""
    table, members = db.collections, db.collection_members
    is_member = members.c.member.in_(bindparam("members", expanding=True))
    query = (
        select(table.c.id, table.c.owner, table.c.everybody, func.max(members.c.right))
        .outerjoin(members, (members.c.collection_id == table.c.id) & is_member)
        .group_by(table.c.id, table.c.owner, table.c.everybody)
    )
    if of_one:
        query = query.where(table.c.id == bindparam("its_id"))
    if not of_all:
        is_own = table.c.owner == bindparam("owner")
        is_given = or_(table.c.everybody > Right.NONE, members.c.right.is_not(None))
        query = query.where(or_(is_own, is_given))
    return query


def _replace_members(
    connection: Connection, collection_id: str, members: Mapping[str, Right]
) -> None:
    table = db.collection_members
    of_it = table.c.collection_id == collection_id
    query = select(table.c.member, table.c.right).where(of_it)
    before = {row.member: Right(row.right) for row in connection.execute(query)}
    after = {_checked_member(key): right for key, right in members.items() if right > Right.NONE}
    connection.execute(delete(table).where(of_it))
    if after:
        rows = [
            {"collection_id": collection_id, "member": member, "right": int(right)}
            for member, right in after.items()
        ]
        connection.execute(insert(table), rows)
    for who in sorted(before.keys() | after.keys()):
        right = after.get(who, Right.NONE)
        if right != before.get(who, Right.NONE):
            record(connection, "right.changed", f"{collection_id} {who} {right.name.lower()}")


def _record_changes(connection: Connection, before: Row[Any], values: Mapping[str, object]) -> None:
    if "name" in values:
        record(connection, "collection.renamed", f"{before.id} {before.name} to {values['name']}")
    everybody = values.get("everybody", before.everybody)
    if everybody != before.everybody:
        right = Right(int(str(everybody))).name.lower()
        record(connection, "right.changed", f"{before.id} everybody {right}")


def _checked_name(name: str) -> str:
    plain = " ".join(db.storable(name).split())
    if not plain or len(plain) > LONGEST_NAME or not plain.isprintable():
        raise UserError(
            f"The name of a collection has 1 to {LONGEST_NAME} characters; {len(plain)} came."
        )
    return plain


def _checked_member(member: str) -> str:
    plain = db.storable(member).strip()
    if not plain or len(plain) > LONGEST_MEMBER or not plain.isprintable():
        raise UserError(
            f"{member[:60]!r} is no name of a member: expected 1 to {LONGEST_MEMBER} "
            "characters, such as ada or group:support."
        )
    return plain


def _checked_everybody(right: Right) -> Right:
    if right > Right.ADD:
        raise UserError("Everybody may read, or read and add; more is given to members by name.")
    return right


def _name_taken(name: str) -> Conflict:
    return Conflict(f"You have a collection called {name!r} already. Give this one another name.")


def right_named(name: str) -> Right:
    """Return the right of this name. Raises UserError."""
    try:
        return Right[name.strip().upper()]
    except KeyError as error:
        rights = ", ".join(right.name.lower() for right in Right)
        raise UserError(f"{name[:40]!r} is no right. Known: {rights}.") from error
