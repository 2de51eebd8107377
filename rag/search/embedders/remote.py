"""Texts to vectors by any server with OpenAI's /v1/embeddings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from rag.errors import ModelUnavailable, UnreadableReply
from rag.seams import Matrix
from rag.search.embedders.engines import clean, unit

# That a server may take, and a second more for each text: a question has words to go on with.
QUESTION_SECONDS, CONNECT_SECONDS = 5.0, 3.0


class OpenAIEmbedder:
    """Any server with OpenAI's /v1/embeddings. Tokens are estimated: it does not count them."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        max_tokens: int = 512,
        batch_size: int = 64,
    ) -> None:
        self.name = model
        self.max_tokens = max_tokens
        self._base_url = base_url
        self._api_key = (
            api_key or "none"
        )  # the client refuses an empty one; local servers ignore it
        self._batch_size = batch_size

    @cached_property
    def dimensions(self) -> int:
        """Those of one vector, which the server is asked for."""
        return len(self._request(["dimensions"])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """At most: three bytes a token is fewer than any common encoding needs for prose."""
        return [2 + (len(text.encode("utf-8", "replace")) + 2) // 3 for text in texts]

    def embed(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[list[float]] = []
        for start in range(0, len(texts), self._batch_size):
            rows.extend(self._request(texts[start : start + self._batch_size]))
        return unit(np.asarray(rows, dtype=np.float32))

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        from openai import Timeout

        with _translate_api_errors(self._base_url, self.name):
            reply = self._client.embeddings.create(
                model=self.name,
                input=[clean(text) or " " for text in texts],
                encoding_format="float",
                timeout=Timeout(QUESTION_SECONDS + len(texts), connect=CONNECT_SECONDS),
            )
        rows = [list(row.embedding) for row in sorted(reply.data or [], key=lambda row: row.index)]
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1:
            raise UnreadableReply(
                f"{self._base_url} sent {len(rows)} vectors for {len(texts)} texts, or of several "
                f"lengths; expected one vector each. Is {self.name!r} an embedding model?"
            )
        return rows

    @cached_property
    def _client(self) -> Any:
        from openai import OpenAI

        return OpenAI(base_url=self._base_url, api_key=self._api_key, max_retries=1)


@contextmanager
def _translate_api_errors(base_url: str, model: str) -> Iterator[None]:
    from openai import APIConnectionError, APIError, AuthenticationError, OpenAIError

    try:
        yield
    except APIConnectionError as error:
        raise ModelUnavailable(
            f"The embedding server at {base_url} cannot be reached ({error}); check that it runs "
            "and that embedding.base_url is right."
        ) from error
    except AuthenticationError as error:
        raise ModelUnavailable(
            f"The embedding server at {base_url} refuses the key; check embedding.api_key_env."
        ) from error
    except (APIError, OpenAIError) as error:
        raise ModelUnavailable(
            f"The embedding server at {base_url} failed for model {model!r}: {error}"
        ) from error
    except ValueError as error:  # the client's own reading of a reply that holds no vectors
        raise UnreadableReply(
            f"The server at {base_url} did not answer as /v1/embeddings does: {error}"
        ) from error
