"""The table of profile vectors: what can be made again, and takes long."""

from __future__ import annotations

from sqlalchemy import Column, Integer, LargeBinary, PrimaryKeyConstraint, Table

from orchestrator.adapters.db.column_types import AnyText
from orchestrator.adapters.db.tables_access import metadata

__all__ = ["metadata", "profile_vectors"]

profile_vectors = Table(
    "profile_vectors",
    metadata,
    Column("model_id", AnyText, nullable=False),
    Column("key", AnyText, nullable=False),
    # How many vectors `data` holds: little-endian float32, one after the other.
    Column("rows", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("model_id", "key"),
)
