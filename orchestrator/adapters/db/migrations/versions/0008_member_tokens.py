"""Tokens of agents and representatives outside of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "member_tokens",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("holder", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_member_tokens"),
    )
    op.create_index("ix_member_tokens_created_at", "member_tokens", ["created_at"])
