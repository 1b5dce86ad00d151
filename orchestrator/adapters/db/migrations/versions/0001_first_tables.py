"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.DateTime(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def job_id(table: str) -> tuple[sa.Column[str], sa.ForeignKeyConstraint]:
    key = sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=f"fk_{table}_job_id", ondelete="CASCADE")
    return sa.Column("job_id", TEXT, nullable=False), key


def upgrade() -> None:
    create_jobs()
    create_what_jobs_have()
    create_audit()
    create_sealed()


def create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("instance_id", TEXT, nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("message", TEXT),
        sa.Column("result", sa.Text()),
        sa.Column("iterations", sa.BigInteger(), nullable=False),
        sa.Column("changes_sha256", TEXT),
        sa.Column("changes_bytes", sa.BigInteger()),
        sa.Column("sandbox_id", TEXT),
        sa.Column("cancel_requested_at", TIME),
        sa.Column("starting_at", TIME),
        sa.Column("registered_at", TIME),
        sa.Column("deadline_at", TIME),
        sa.Column("finished_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_created_at_id", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_state", "jobs", ["state"])


def create_what_jobs_have() -> None:
    op.create_table(
        "job_events",
        *job_id("job_events"),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("seq", sa.BigInteger()),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "position", name="pk_job_events"),
        sa.UniqueConstraint("job_id", "source", "seq", name="uq_job_events_job_id_source_seq"),
    )
    op.create_table(
        "executions",
        *job_id("executions"),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("tool_name", TEXT, nullable=False),
        sa.Column("runner", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("answer", sa.Text()),
        sa.PrimaryKeyConstraint("job_id", "key", name="pk_executions"),
    )
    op.create_table(
        "deliveries",
        sa.Column("number", NUMBER, sa.Identity(), nullable=False),
        *job_id("deliveries"),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("thread_id", TEXT),
        sa.Column("task_id", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("acknowledged", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_deliveries"),
        sa.UniqueConstraint("job_id", "id", name="uq_deliveries_job_id_id"),
    )
    op.create_table(
        "artifacts",
        sa.Column("id", TEXT, nullable=False),
        *job_id("artifacts"),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
    )
    op.create_index("ix_artifacts_job_id", "artifacts", ["job_id"])


def create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("number", NUMBER, sa.Identity(), nullable=False),
        sa.Column("job_id", TEXT, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("tool_name", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("call_id", TEXT, nullable=False),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("verdict", TEXT, nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("output_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_job_id_number", "audit", ["job_id", "number"])


def create_sealed() -> None:
    op.create_table(
        "secrets",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )
    op.create_table(
        "signing_keys",
        sa.Column("kid", TEXT, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("retired_at", TIME),
        sa.PrimaryKeyConstraint("kid", name="pk_signing_keys"),
    )
