"""Representatives, access, confirmations and the operator's channel."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.DateTime(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "representatives",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("person", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("active_network", TEXT),
        sa.Column("grants", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_representatives"),
    )
    op.create_table(
        "network_access",
        sa.Column("person", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("rights", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("person", "network", name="pk_network_access"),
    )
    create_confirmations()
    create_channel_messages()


def create_confirmations() -> None:
    op.create_table(
        "confirmations",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("representative", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("call", TEXT, nullable=False),
        sa.Column("says", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("confirmed_at", TIME),
        sa.Column("used_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_confirmations"),
    )
    op.create_index("ix_confirmations_expires_at", "confirmations", ["expires_at"])


def create_channel_messages() -> None:
    op.create_table(
        "channel_messages",
        sa.Column("number", NUMBER, sa.Identity(), nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("representative", TEXT, nullable=False),
        sa.Column("conversation_id", TEXT, nullable=False),
        sa.Column("from_operator", sa.Boolean(), nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_channel_messages"),
        sa.UniqueConstraint("id", name="uq_channel_messages_id"),
    )
    op.create_index(
        "ix_channel_messages_representative_number", "channel_messages", ["representative", "number"]
    )
