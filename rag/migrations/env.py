"""Run the migrations on the connection that `rag.database.migrate` opened."""

from alembic import context

from rag.database import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction holds it all
)
context.run_migrations()
