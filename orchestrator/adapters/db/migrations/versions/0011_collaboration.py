"""Requests for collaboration, and what searching for agents keeps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.add_column(
        "networks", sa.Column("profiles_revision", sa.Integer(), nullable=False, server_default="0")
    )
    create_network_requests()
    op.create_table(
        "profile_vectors",
        sa.Column("model_id", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "key", name="pk_profile_vectors"),
    )


def create_network_requests() -> None:
    op.create_table(
        "network_requests",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("requester", TEXT, nullable=False),
        sa.Column("requester_instance", TEXT, nullable=False),
        sa.Column("call_id", TEXT, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("thread_id", TEXT, nullable=False),
        sa.Column("message_id", TEXT, nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("response_id", TEXT),
        sa.Column("answered_at", TIME),
        sa.Column("consumed_call", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("network", "id", name="pk_network_requests"),
        sa.UniqueConstraint(
            "network",
            "requester_instance",
            "call_id",
            name="uq_network_requests_network_requester_instance_call_id",
        ),
        sa.UniqueConstraint("network", "thread_id", name="uq_network_requests_network_thread_id"),
    )
    op.create_index("ix_network_requests_network_expires_at", "network_requests", ["network", "expires_at"])
