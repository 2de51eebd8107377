"""LangChain: a middleware that trims what an agent's model is sent, and a retriever.

agent = create_agent(model, tools, middleware=[TrimHistory(HistoryTrimmer(max_tokens=8000))])
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    SystemMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.retrievers import BaseRetriever

from groundnote.integrations.turns import trimmed_turns
from rag import HistoryTrimmer

if TYPE_CHECKING:  # a caller with a library has loaded it
    from groundnote.library import Library


class TrimHistory(AgentMiddleware[Any, Any, Any]):
    """Sends the model a history that fits; the state of the agent keeps all messages."""

    def __init__(self, trimmer: HistoryTrimmer) -> None:
        super().__init__()
        self._trimmer = trimmer

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._trimmed(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(self._trimmed(request))

    def _trimmed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        rules: list[AnyMessage] = [request.system_message] if request.system_message else []
        messages = trimmed_turns(
            self._trimmer,
            [*rules, *request.messages],
            is_question=lambda message: isinstance(message, HumanMessage),
            plain=lambda message: convert_to_openai_messages([message])[0],
            back=lambda message: convert_to_messages([message])[0],
        )
        first = messages[0] if messages and isinstance(messages[0], SystemMessage) else None
        rest = messages[1:] if first is not None else messages
        return request.override(messages=rest, system_message=first)


class LibraryRetriever(BaseRetriever):
    """Retrieves passages of a Groundnote library."""

    library: Any  # a groundnote.Library
    limit: int = 8

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        library: Library = self.library
        return [
            Document(
                id=hit.chunk.id,
                page_content=hit.chunk.text,
                metadata={
                    "document": hit.chunk.document_name,
                    "title": hit.chunk.document_title,
                    "locator": hit.chunk.locator,
                    "score": hit.score,
                },
            )
            for hit in library.search(query, limit=self.limit)
        ]
