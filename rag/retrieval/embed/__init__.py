"""Texts to vectors: a model on this machine, or any server with /v1/embeddings."""

from rag.retrieval.embed.local import LocalEmbedder
from rag.retrieval.embed.remote import OpenAIEmbedder

__all__ = ["LocalEmbedder", "OpenAIEmbedder"]
