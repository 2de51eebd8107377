"""Background jobs: their table, their queue, and their handlers."""
