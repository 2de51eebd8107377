"""The tools of one session: its documents, its past, and what the next context shows of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.citations.markers import neutralise
from rag.errors import UserError
from rag.records import Hit, Message, Source, Summary
from rag.seams import SessionHandle, ToolSpec
from rag.sessions.context import ContextPreferences
from rag.sessions.recall import Recall
from rag.sessions.tools import BadArguments, Toolbox, ToolResult, tool_spec

MAX_HITS = 20
MAX_SLICE = 200  # messages
SNIPPET_CHARACTERS = 240
TOOLS = (
    "search_documents",
    "query_table",
    "search_session_history",
    "request_context_slice",
    "summarize_message_range",
)


@dataclass(frozen=True, slots=True)
class Actions:
    """What the tools do with the rest of the application."""

    search: Callable[[SessionHandle, str, int], Sequence[Hit]]
    prefer: Callable[[SessionHandle, ContextPreferences], None]
    summarize: Callable[[SessionHandle, int, int], Summary]
    recall: Recall
    query_tables: Callable[[SessionHandle, str], str] | None = None  # None: no tables are kept


class SessionTools:
    """The functions whose signatures the model is shown; every index is checked."""

    def __init__(self, session: SessionHandle, actions: Actions) -> None:
        self._session = session
        self._actions = actions

    def toolbox(self) -> Toolbox:
        """All of them."""
        return Toolbox([getattr(self, name) for name in TOOLS])

    def search_documents(self, query: str, limit: int = 5) -> ToolResult:
        """Search the documents. Only when the sources beside the question do not answer it.

        Cite what you use by the numbers given here.

        Args:
            query: What to look for, as a question or in keywords.
            limit: How many sources at most, from 1 to 20.
        """
        hits = self._actions.search(self._session, query, _limited(limit))
        sources = self._session.register(hits)
        if not sources:
            return ToolResult("Nothing in the documents fits.", "found nothing")
        text = "\n\n".join(_numbered(source) for source in sources)
        marks = ", ".join(source.marker for source in sources)
        return ToolResult(text, f"found {marks}")

    def query_table(self, question: str) -> ToolResult:
        """Have figures computed from tables of the documents: counts, sums, averages, ranks.

        Take every figure from the result and cite its number; never calculate yourself.

        Args:
            question: What to compute, such as "sum of Revenue by Region in Q3".
        """
        if self._actions.query_tables is None:
            raise BadArguments("There are no tables to query.")
        try:
            text = self._actions.query_tables(self._session, question)
        except UserError as error:
            raise BadArguments(str(error)) from error
        return ToolResult(text, f"computed “{question[:80]}”")

    def search_session_history(self, query: str, limit: int = 10) -> ToolResult:
        """Search all earlier messages of this conversation, also those no longer shown to you.

        When the question is about something said before that you do not see.

        Args:
            query: The words to find; messages that contain them come first, then related ones.
            limit: How many messages at most, from 1 to 20.
        """
        limit = _limited(limit)
        found = self._session.search(query, limit=limit)
        results = [_result(match.index, match.role, match.snippet, "text") for match in found.found]
        if len(results) < limit:
            known = {match.index for match in found.found}
            results += self._related(query, known, limit - len(results))
        total = max(found.total, len(results))
        answer = {"total": total, "results": results}
        return ToolResult(json.dumps(answer, ensure_ascii=False), f"found {total} messages")

    def _related(self, query: str, known: set[int], room: int) -> list[dict[str, str | int]]:
        """Messages that say it in other words."""
        count = self._session.read().message_count
        turns = self._actions.recall.relevant(self._session, query, before=count, limit=room)
        messages = [message for turn in turns for message in (turn.question, turn.answer)]
        return [
            _result(message.index, message.role, _beginning(message), "meaning")
            for message in messages
            if message.index not in known
        ][:room]

    def request_context_slice(self, start: int, end: int) -> ToolResult:
        """Have earlier messages shown to you word for word with the next question.

        Args:
            start: Index of the first message, from 0.
            end: Index after the last message.
        """
        self._check_range(start, end)
        self._actions.prefer(self._session, ContextPreferences(start, end))
        said = f"Messages {start} to {end - 1} will be shown with the next question, once."
        return ToolResult(said, f"messages {start} to {end - 1} for the next question")

    def summarize_message_range(self, start: int, end: int) -> ToolResult:
        """Summarise earlier messages, with all their source numbers and product names.

        Args:
            start: Index of the first message, from 0.
            end: Index after the last message.
        """
        self._check_range(start, end)
        for summary in self._session.requested_summaries():
            if (summary.start, summary.end) == (start, end):
                return ToolResult(summary.text, f"messages {start} to {end - 1}, as before")
        summary = self._actions.summarize(self._session, start, end)
        return ToolResult(summary.text, f"summarised messages {start} to {end - 1}")

    def _check_range(self, start: int, end: int) -> None:
        count = self._session.read().message_count
        if not 0 <= start < end <= count:
            raise BadArguments(
                f"messages {start} to {end} are no range of this conversation: 'start' must be at "
                f"least 0 and below 'end', and 'end' at most {count}, its number of messages."
            )
        if end - start > MAX_SLICE:
            raise BadArguments(
                f"{end - start} messages are too many at once; at most {MAX_SLICE}. Ask for less."
            )


def tool_specs() -> tuple[ToolSpec, ...]:
    """All tools as a model is told of them."""
    return tuple(tool_spec(getattr(SessionTools, name)) for name in TOOLS)


def _limited(limit: int) -> int:
    if not 1 <= limit <= MAX_HITS:
        raise BadArguments(f"'limit' is {limit}; expected a number from 1 to {MAX_HITS}.")
    return limit


def _numbered(source: Source) -> str:
    """A source under its number; what looks like a marker in its own text is none."""
    place = neutralise(f"{source.document_title}, {source.locator}".rstrip(", "))
    return f"{source.marker} {place}\n{neutralise(source.passage)}"


def _result(index: int, role: str, snippet: str, match: str) -> dict[str, str | int]:
    return {"index": index, "role": role, "snippet": snippet, "match": match}


def _beginning(message: Message) -> str:
    text = message.content
    return text if len(text) <= SNIPPET_CHARACTERS else text[:SNIPPET_CHARACTERS] + "…"
