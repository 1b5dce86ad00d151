"""The tables of those who come from outside."""

from __future__ import annotations

from sqlalchemy import Column, Index, Table

from orchestrator.adapters.db.column_types import AnyText, UtcTime
from orchestrator.adapters.db.tables_network import metadata

__all__ = ["member_tokens", "metadata"]

member_tokens = Table(
    "member_tokens",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("holder", AnyText, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("network", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("revoked_at", UtcTime),
    Index(None, "created_at"),
)
