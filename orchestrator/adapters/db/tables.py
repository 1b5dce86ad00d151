"""The tables. A change here needs a migration beside it: a test compares the two.

Other modules of this package add tables to the same `metadata` and are imported by `migrations/env.py`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    false,
)

from orchestrator.adapters.db.column_types import AnyText, JsonText, RowNumber, UtcTime

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)


def _job_id() -> Column[str]:
    """What belongs to a job goes with it."""
    return Column("job_id", AnyText, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False)


jobs = Table(
    "jobs",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("network", AnyText, nullable=False),
    Column("state", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("instance_id", AnyText, nullable=False),
    Column("spec", JsonText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("message", AnyText),
    Column("result", JsonText),
    Column("iterations", BigInteger, nullable=False),
    Column("model_requests", BigInteger, nullable=False, server_default="0"),
    Column("tokens_used", BigInteger, nullable=False, server_default="0"),
    Column("changes_sha256", AnyText),
    Column("changes_bytes", BigInteger),
    Column("sandbox_id", AnyText),
    Column("cancel_requested_at", UtcTime),
    Column("starting_at", UtcTime),
    Column("registered_at", UtcTime),
    Column("working_at", UtcTime),
    Column("deadline_at", UtcTime),
    Column("finished_at", UtcTime),
    Index(None, "created_at", "id"),
    Index(None, "state"),
)

job_events = Table(
    "job_events",
    metadata,
    _job_id(),
    Column("position", BigInteger, nullable=False),
    Column("source", AnyText, nullable=False),
    Column("seq", BigInteger),
    Column("type", AnyText, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("data", JsonText, nullable=False),
    PrimaryKeyConstraint("job_id", "position"),
    UniqueConstraint("job_id", "source", "seq"),
)

executions = Table(
    "executions",
    metadata,
    _job_id(),
    Column("key", AnyText, nullable=False),
    Column("fingerprint", AnyText, nullable=False),
    Column("tool_name", AnyText, nullable=False),
    Column("runner", AnyText, nullable=False),
    Column("state", AnyText, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("answer", JsonText),
    PrimaryKeyConstraint("job_id", "key"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("number", RowNumber, Identity(), primary_key=True),
    _job_id(),
    Column("id", AnyText, nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("thread_id", AnyText),
    Column("task_id", AnyText),
    Column("created_at", UtcTime, nullable=False),
    Column("acknowledged", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("job_id", "id"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("id", AnyText, primary_key=True),
    _job_id(),
    Column("sha256", AnyText, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("media_type", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Index(None, "job_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("number", RowNumber, Identity(), primary_key=True),
    # Calls that no job made have rows too, so this is no foreign key.
    Column("job_id", AnyText, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("agent", AnyText, nullable=False),
    Column("network", AnyText, nullable=False),
    Column("tool_name", AnyText, nullable=False),
    Column("source", AnyText, nullable=False),
    Column("call_id", AnyText, nullable=False),
    Column("params", JsonText, nullable=False),
    Column("verdict", AnyText, nullable=False),
    Column("schema_verdict", AnyText, nullable=False, server_default="fits"),
    Column("violations", JsonText, nullable=False, server_default="[]"),
    Column("adjustments", JsonText, nullable=False, server_default="[]"),
    Column("duration_ms", BigInteger, nullable=False),
    Column("output_bytes", BigInteger, nullable=False),
    Index(None, "job_id", "number"),
    Index(None, "tool_name", "number"),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", AnyText, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", AnyText, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("retired_at", UtcTime),
    Column("purpose", AnyText, nullable=False),
)

disabled_tools = Table(
    "disabled_tools",
    metadata,
    Column("owner", AnyText, primary_key=True),
    Column("original_name", AnyText, primary_key=True),
)
