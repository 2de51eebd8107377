"""Former paths of `rag.connectors`, which packages of others import."""
