"""The agent network's tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.DateTime(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    create_networks()
    create_network_agents()
    create_network_instances()
    create_network_tasks()
    create_network_task_history()
    create_network_claims()
    create_network_artifacts()
    create_network_threads()
    create_network_messages()
    create_network_deliveries()


def create_networks() -> None:
    op.create_table(
        "networks",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_networks"),
    )


def create_network_agents() -> None:
    op.create_table(
        "network_agents",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("summary", TEXT, nullable=False),
        sa.Column("description", TEXT, nullable=False),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("payment_address", TEXT),
        sa.Column("capabilities", sa.Text(), nullable=False),
        sa.Column("skills", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("examples", sa.Text(), nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("groups", sa.Text(), nullable=False),
        sa.Column("responsibilities", sa.Text(), nullable=False),
        sa.Column("launch", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("network", "name", name="pk_network_agents"),
    )


def create_network_instances() -> None:
    op.create_table(
        "network_instances",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("job_id", TEXT),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("joined_at", TIME, nullable=False),
        sa.Column("last_seen_at", TIME),
        sa.Column("capabilities", sa.Text(), nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("ended_reason", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_network_instances"),
    )
    op.create_index("ix_network_instances_network_state", "network_instances", ["network", "state"])


def create_network_tasks() -> None:
    op.create_table(
        "network_tasks",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("objective", TEXT, nullable=False),
        sa.Column("acceptance_criteria", sa.Text(), nullable=False),
        sa.Column("creator", TEXT, nullable=False),
        sa.Column("creator_instance", TEXT, nullable=False),
        sa.Column("call_id", TEXT, nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("resource", TEXT),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("offered_to", sa.Text(), nullable=False),
        sa.Column("declined_by", sa.Text(), nullable=False),
        sa.Column("assignee", TEXT),
        sa.Column("assignee_instance", TEXT),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("network", "id", name="pk_network_tasks"),
        sa.UniqueConstraint(
            "network", "creator_instance", "call_id", name="uq_network_tasks_network_creator_instance_call_id"
        ),
    )
    op.create_index("ix_network_tasks_network_updated_at", "network_tasks", ["network", "updated_at"])
    op.create_index("ix_network_tasks_network_state", "network_tasks", ["network", "state"])


def create_network_task_history() -> None:
    op.create_table(
        "network_task_history",
        sa.Column("number", NUMBER, sa.Identity(), nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("task_id", TEXT, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("instance_id", TEXT, nullable=False),
        sa.Column("call_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_network_task_history"),
    )
    op.create_index(
        "ix_network_task_history_network_task_id_number",
        "network_task_history",
        ["network", "task_id", "number"],
    )


def create_network_claims() -> None:
    op.create_table(
        "network_claims",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("instance_id", TEXT, nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("task_id", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.PrimaryKeyConstraint("network", "id", name="pk_network_claims"),
    )
    op.create_index("ix_network_claims_network_expires_at", "network_claims", ["network", "expires_at"])


def create_network_artifacts() -> None:
    op.create_table(
        "network_artifacts",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("uri", TEXT, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("label", TEXT, nullable=False),
        sa.Column("task_id", TEXT),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("instance_id", TEXT, nullable=False),
        sa.Column("call_id", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("network", "id", name="pk_network_artifacts"),
        sa.UniqueConstraint(
            "network", "instance_id", "call_id", name="uq_network_artifacts_network_instance_id_call_id"
        ),
    )
    op.create_index("ix_network_artifacts_network_task_id", "network_artifacts", ["network", "task_id"])


def create_network_threads() -> None:
    op.create_table(
        "network_threads",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("participants", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("network", "id", name="pk_network_threads"),
    )


def create_network_messages() -> None:
    op.create_table(
        "network_messages",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("thread_id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("sender", TEXT, nullable=False),
        sa.Column("sender_instance", TEXT, nullable=False),
        sa.Column("call_id", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("task_id", TEXT),
        sa.Column("resource", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("network", "id", name="pk_network_messages"),
        sa.UniqueConstraint(
            "network",
            "sender_instance",
            "call_id",
            name="uq_network_messages_network_sender_instance_call_id",
        ),
    )


def create_network_deliveries() -> None:
    op.create_table(
        "network_deliveries",
        sa.Column("number", NUMBER, sa.Identity(), nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("instance_id", TEXT),
        sa.Column("sender_instance", TEXT, nullable=False),
        sa.Column("message_id", TEXT),
        sa.Column("task_id", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("held_by", TEXT),
        sa.Column("held_call", TEXT, nullable=False),
        sa.Column("handed_out", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", TIME),
        sa.PrimaryKeyConstraint("number", name="pk_network_deliveries"),
        sa.UniqueConstraint("network", "id", name="uq_network_deliveries_network_id"),
    )
    op.create_index(
        "ix_network_deliveries_network_agent_state_number",
        "network_deliveries",
        ["network", "agent", "state", "number"],
    )
    op.create_index(
        "ix_network_deliveries_network_message_id", "network_deliveries", ["network", "message_id"]
    )
