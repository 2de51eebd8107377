"""Collections: who may do what, and that nobody finds what they may not read."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from rag.db import logins, writing
from rag.documents.collections import Callers, Collections, groups_at_login
from rag.errors import Conflict, NotFound, UserError
from rag.records import DEFAULT_COLLECTION, Readable, Right


@pytest.fixture
def collections(any_engine):
    callers = Callers(
        are_one=False,
        counts_as=lambda owner: frozenset({owner, "group:support"} if owner == "sue" else {owner}),
        admins=frozenset({"root"}),
    )
    return Collections(any_engine, callers)


@pytest.fixture
def private(collections):
    """A collection of Ada's that she alone may read."""
    return collections.create("ada", "Salaries").id


class TestARight:
    def test_to_the_library_is_everybodys(self, collections):
        assert collections.right("ben", DEFAULT_COLLECTION) is Right.ADD

    def test_to_a_collection_is_its_owners(self, collections, private):
        assert collections.right("ada", private) is Right.MANAGE
        assert collections.right("ben", private) is Right.NONE
        assert collections.readable("ben") == Readable(frozenset({DEFAULT_COLLECTION}))

    def test_is_given_to_members_and_groups(self, collections, private):
        collections.change(private, members={"ben": Right.WRITE, "group:support": Right.READ})

        assert collections.right("ben", private) is Right.WRITE
        assert collections.right("sue", private) is Right.READ
        assert collections.right("cleo", private) is Right.NONE

    def test_ends_when_it_is_taken_away(self, collections, private):
        collections.change(private, members={"ben": Right.READ})
        collections.change(private, members={})

        assert not collections.readable("ben").holds(private)

    def test_is_the_higher_of_everybodys_and_ones_own(self, collections, private):
        collections.change(private, everybody=Right.READ, members={"ben": Right.WRITE})

        assert collections.right("cleo", private) is Right.READ
        assert collections.right("ben", private) is Right.WRITE

    @pytest.mark.parametrize("owner", ["root", ""], ids=["administrator", "operator"])
    def test_to_everything_is_that_of_those_who_run_the_server(self, collections, private, owner):
        assert collections.right(owner, private) is Right.MANAGE

    def test_of_a_collection_that_is_not_there_is_none(self, collections):
        assert collections.right("root", "12345") is Right.NONE

    def test_is_everybodys_where_all_are_one(self, any_engine):
        alone = Collections(any_engine)

        assert alone.readable("local").ids is None
        assert alone.right("local", DEFAULT_COLLECTION) is Right.MANAGE


class TestACollection:
    def test_of_others_is_as_one_that_is_not_there(self, collections, private):
        with pytest.raises(NotFound) as hidden:
            collections.collection("ben", private)
        with pytest.raises(NotFound) as missing:
            collections.collection("ben", "9" * len(private))

        assert str(hidden.value).replace(private, "") == str(missing.value).replace(
            "9" * len(private), ""
        )

    def test_may_have_the_name_of_somebody_elses(self, collections, private):
        assert collections.create("ben", "Salaries").id != private

    def test_may_not_have_the_name_of_another_of_ones_own(self, collections, private):
        with pytest.raises(Conflict, match="Salaries"):
            collections.create("ada", "Salaries")

    @pytest.mark.parametrize("name", ["", "  ", "x" * 101])
    def test_has_a_name(self, collections, name):
        with pytest.raises(UserError, match="1 to 100"):
            collections.create("ada", name)

    def test_may_not_be_for_everybody_to_change(self, collections, private):
        with pytest.raises(UserError, match="Everybody may read"):
            collections.change(private, everybody=Right.WRITE)

    def test_goes_when_it_is_empty(self, collections, private):
        collections.change(private, members={"ben": Right.READ})

        collections.delete(private)

        assert not collections.readable("ada").holds(private)
        assert collections.members(private) == {}

    def test_that_everything_begins_in_stays(self, collections):
        with pytest.raises(Conflict, match="stays"):
            collections.delete(DEFAULT_COLLECTION)

    def test_is_found_by_name_as_people_type_it(self, collections, private):
        assert collections.find("ada", " salaries").id == private
        with pytest.raises(NotFound, match="There are: Library"):
            collections.find("ben", "Salaries")


def test_groups_are_those_of_the_newest_login_until_it_is_over(any_engine):
    now, hour = datetime.now(UTC), timedelta(hours=1)
    of_each = {
        "older": ("ada", ["group:old"], now - 2 * hour, now + hour),
        "newest": ("ada", ["group:support"], now - hour, now + hour),
        "over": ("ben", ["group:support"], now - hour, now - timedelta(seconds=1)),
    }
    rows = [
        {
            "id": name, "owner": owner, "groups": groups, "created_at": began, "expires_at": ends,
            "last_used_at": began, "credential": "", "address": "", "agent": "",
        }
        for name, (owner, groups, began, ends) in of_each.items()
    ]  # fmt: skip
    with writing(any_engine) as connection:
        connection.execute(insert(logins), rows)

    assert groups_at_login(any_engine, "ada") == ["group:support"]
    assert groups_at_login(any_engine, "ben") == []
    assert groups_at_login(any_engine, "cleo") == []
