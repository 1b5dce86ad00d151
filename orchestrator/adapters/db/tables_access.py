"""The tables of those who come from outside."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Identity, Index, PrimaryKeyConstraint, Table, UniqueConstraint

from orchestrator.adapters.db.column_types import AnyText, JsonText, RowNumber, UtcTime
from orchestrator.adapters.db.tables_network import metadata

__all__ = [
    "channel_messages",
    "confirmations",
    "member_tokens",
    "metadata",
    "network_access",
    "representatives",
]

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

representatives = Table(
    "representatives",
    metadata,
    Column("name", AnyText, primary_key=True),
    Column("person", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("active_network", AnyText),
    Column("grants", JsonText, nullable=False),
)

network_access = Table(
    "network_access",
    metadata,
    Column("person", AnyText, nullable=False),
    Column("network", AnyText, nullable=False),
    Column("rights", JsonText, nullable=False),
    PrimaryKeyConstraint("person", "network"),
)

confirmations = Table(
    "confirmations",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("representative", AnyText, nullable=False),
    Column("network", AnyText, nullable=False),
    Column("call", AnyText, nullable=False),
    Column("says", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("confirmed_at", UtcTime),
    Column("used_at", UtcTime),
    Index(None, "expires_at"),
)

channel_messages = Table(
    "channel_messages",
    metadata,
    Column("number", RowNumber, Identity(), primary_key=True),
    Column("id", AnyText, nullable=False),
    Column("representative", AnyText, nullable=False),
    Column("conversation_id", AnyText, nullable=False),
    Column("from_operator", Boolean, nullable=False),
    Column("body", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("id"),
    Index(None, "representative", "number"),
)
