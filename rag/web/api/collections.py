"""The JSON API of collections: which there are, who may do what with them."""

from typing import Annotated, Literal

from pydantic import AliasPath, BaseModel, BeforeValidator, Field

from rag.documents.collections import right_named
from rag.records import Right
from rag.web.access import rights
from rag.web.api.requests import Body, Title
from rag.web.openapi import Described, DescribedApi
from rag.web.request_context import application

api = DescribedApi("collections", "What may be asked, and by whom.")
Everybodys = Literal["none", "read", "add"]
MemberRight = Literal["read", "add", "write", "manage"]


RightName = Annotated[str, BeforeValidator(lambda right: Right(right).name.lower())]


class CollectionModel(Described):
    """A collection as the caller sees it; who its members are is told to those who manage it."""

    id: str = Field(validation_alias=AliasPath("collection", "id"))
    name: str = Field(validation_alias=AliasPath("collection", "name"))
    owner: str = Field(validation_alias=AliasPath("collection", "owner"))
    right: RightName  # the caller's
    everybody: RightName = Field(validation_alias=AliasPath("collection", "everybody"))
    document_count: int
    members: dict[str, RightName] | None = None


class CollectionsModel(Described):
    """The collections that the caller may read."""

    collections: list[CollectionModel]


class CollectionPath(BaseModel):
    """Names a collection."""

    collection_id: str


class NewCollectionBody(Body):
    """A collection to make."""

    name: Title
    everybody: Everybodys = "none"


class CollectionBody(Body):
    """What is left out stays as it is; `members` are all of them."""

    name: Title | None = None
    everybody: Everybodys | None = None
    members: Annotated[dict[str, MemberRight], Field(max_length=1000)] | None = None


@api.get("/collections", responses={"200": CollectionsModel})
def list_collections() -> CollectionsModel:
    """The collections that the caller may read."""
    return CollectionsModel.of(collections=rights.readable_collections())


@api.post("/collections", responses={"201": CollectionModel})
def create_collection(body: NewCollectionBody) -> tuple[CollectionModel, int]:
    """Make a collection of the caller's."""
    collection = rights.create_collection(body.name, everybody=right_named(body.everybody))
    return _collection_model(collection.id), 201


@api.get("/collections/<collection_id>", responses={"200": CollectionModel})
def read_collection(path: CollectionPath) -> CollectionModel:
    """One collection; with its members for those who manage it."""
    return _collection_model(path.collection_id)


@api.put("/collections/<collection_id>", responses={"200": CollectionModel})
def change_collection(path: CollectionPath, body: CollectionBody) -> CollectionModel:
    """Rename it, or say who may do what."""
    members = body.members
    rights.change_collection(
        path.collection_id,
        name=body.name,
        everybody=None if body.everybody is None else right_named(body.everybody),
        members=None if members is None else {w: right_named(r) for w, r in members.items()},
    )
    return _collection_model(path.collection_id)


@api.delete("/collections/<collection_id>", responses={"204": None})
def delete_collection(path: CollectionPath) -> tuple[str, int]:
    """Delete an empty collection."""
    rights.delete_collection(path.collection_id)
    return "", 204


def _collection_model(collection_id: str) -> CollectionModel:
    collection = rights.require_collection(collection_id)
    is_managed = collection.right >= Right.MANAGE
    members = application().collections.members(collection.id) if is_managed else None
    return CollectionModel.of(collection, members=members)
