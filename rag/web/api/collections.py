"""The JSON API of collections: which there are, who may do what with them."""

from typing import Annotated, Any, Literal

from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag
from pydantic import BaseModel, BeforeValidator, Field

from rag.documents.collections import Held, right_named
from rag.records import Right
from rag.web.access import rights
from rag.web.api.requests import Body, storable_text
from rag.web.api.responses import as_json
from rag.web.current import application
from rag.web.problems import REFUSALS

api = APIBlueprint(
    "collections",
    __name__,
    url_prefix="/api/v1",
    abp_tags=[Tag(name="collections", description="What may be asked, and by whom.")],
    abp_responses=REFUSALS,
)
Name = Annotated[str, Field(max_length=300), BeforeValidator(storable_text)]
Everybodys = Literal["none", "read", "add"]
MemberRight = Literal["read", "add", "write", "manage"]


class CollectionModel(BaseModel):
    """A collection as the caller sees it; who its members are is told to those who manage it."""

    id: str
    name: str
    owner: str
    right: str  # the caller's
    everybody: str
    document_count: int
    members: dict[str, str] | None = None

    @classmethod
    def of(cls, held: Held, members: dict[str, Right] | None = None) -> "CollectionModel":
        told = None if members is None else {who: r.name.lower() for who, r in members.items()}
        return cls(
            id=held.id,
            name=held.name,
            owner=held.collection.owner,
            right=held.right.name.lower(),
            everybody=held.collection.everybody.name.lower(),
            document_count=held.document_count,
            members=told,
        )


class CollectionsModel(BaseModel):
    """The collections that the caller may read."""

    collections: list[CollectionModel]


class CollectionPath(BaseModel):
    """Names a collection."""

    collection_id: str


class NewCollectionBody(Body):
    """A collection to make."""

    name: Name
    everybody: Everybodys = "none"


class CollectionBody(Body):
    """What is left out stays as it is; `members` are all of them."""

    name: Name | None = None
    everybody: Everybodys | None = None
    members: Annotated[dict[str, MemberRight], Field(max_length=1000)] | None = None


@api.get("/collections", responses={"200": CollectionsModel})
def list_collections() -> dict[str, Any]:
    """The collections that the caller may read."""
    found = rights.held_collections()
    return as_json(CollectionsModel(collections=[CollectionModel.of(each) for each in found]))


@api.post("/collections", responses={"201": CollectionModel})
def create_collection(body: NewCollectionBody) -> tuple[dict[str, Any], int]:
    """Make a collection of the caller's."""
    made = rights.create_collection(body.name, everybody=right_named(body.everybody))
    return as_json(_shown(made.id)), 201


@api.get("/collections/<collection_id>", responses={"200": CollectionModel})
def read_collection(path: CollectionPath) -> dict[str, Any]:
    """One collection; with its members for those who manage it."""
    return as_json(_shown(path.collection_id))


@api.put("/collections/<collection_id>", responses={"200": CollectionModel})
def change_collection(path: CollectionPath, body: CollectionBody) -> dict[str, Any]:
    """Rename it, or say who may do what."""
    members = body.members
    rights.change_collection(
        path.collection_id,
        name=body.name,
        everybody=None if body.everybody is None else right_named(body.everybody),
        members=None if members is None else {w: right_named(r) for w, r in members.items()},
    )
    return as_json(_shown(path.collection_id))


@api.delete("/collections/<collection_id>", responses={"204": None})
def delete_collection(path: CollectionPath) -> tuple[str, int]:
    """Delete an empty collection."""
    rights.delete_collection(path.collection_id)
    return "", 204


def _shown(collection_id: str) -> CollectionModel:
    held = rights.held_collection(collection_id)
    is_managed = held.right >= Right.MANAGE
    return CollectionModel.of(
        held, application().collections.members(held.id) if is_managed else None
    )
