"""Alembic's entry: runs migrations on the connection that `schema.upgrade` gives it."""

from __future__ import annotations

from alembic import context

# The last module that adds tables: with it, all of them are there.
from orchestrator.adapters.db.tables_profiles import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    render_as_batch=True,
    # SQLite's too: `schema.upgrade` holds the transaction.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
