"""Sources of documents and who may do what with them: whoever manages their collection, all."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from rag.connectors.registry import SourceRegistry, SourceStatus
from rag.errors import Forbidden, NotFound
from rag.records import DocumentSource, Right
from rag.web.access.owner import current_owner
from rag.web.access.rights import held_collection, is_one, rights
from rag.web.request_context import application, checked_id

FromSources = TypeVar("FromSources")


def source_registry() -> SourceRegistry:
    """All sources, whoever asks."""
    return application().sources


def managed_sources(collection_ids: Sequence[str] = ()) -> list[SourceStatus]:
    """Of the collections that the caller manages, or of these among them; by address."""
    managed = [key for key, right in rights().items() if right >= Right.MANAGE]
    wanted = [key for key in managed if not collection_ids or key in collection_ids]
    return source_registry().statuses(source_registry().table.sources(wanted))


def managed_source(source_id: str) -> SourceStatus:
    """Raises NotFound, also where the caller does not manage its collection."""
    source = source_registry().table.source(checked_id(source_id, "source"))
    if rights().get(source.collection_id, Right.NONE) < Right.MANAGE:
        raise NotFound(f"There is no source {source_id!r}.")
    return source_registry().statuses([source])[0]


def add_source(wish: DocumentSource) -> SourceStatus:
    """Raises NotFound, Forbidden, UserError and Conflict."""
    held_collection(wish.collection_id, least=Right.MANAGE)
    if wish.is_operators:
        raise Forbidden("Only whoever runs the server adds a source in its name.")
    source = source_registry().add(wish)
    return source_registry().statuses([source])[0]


def adding_owner() -> str:
    """The owner of what the caller adds."""
    return "" if is_one() else current_owner()


def with_source(source_id: str, do: Callable[[str], FromSources]) -> FromSources:
    """Do something with a source that the caller manages."""
    return do(managed_source(source_id).source.id)
