"""Run the migrations on the connection that `rag.db.migrate` opened."""

from alembic import context

from rag.db import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction holds it all
)
context.run_migrations()
