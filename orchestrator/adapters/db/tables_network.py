"""The agent network's tables: a column for each field of the domain's values, of the same name.

Every key begins with the network, so a statement that leaves it out finds nothing by accident. Nothing but
the definition of a removed agent is ever deleted, so no table refers to another by a foreign key.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)

from orchestrator.adapters.db.column_types import AnyText, JsonText, RowNumber, UtcTime
from orchestrator.adapters.db.tables import metadata

__all__ = [
    "metadata",
    "network_agents",
    "network_artifacts",
    "network_claims",
    "network_deliveries",
    "network_instances",
    "network_launches",
    "network_messages",
    "network_requests",
    "network_task_history",
    "network_tasks",
    "network_threads",
    "networks",
]


def _network() -> Column[str]:
    return Column("network", AnyText, nullable=False)


networks = Table(
    "networks",
    metadata,
    Column("name", AnyText, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("profiles_revision", Integer, nullable=False, server_default="0"),
)

network_agents = Table(
    "network_agents",
    metadata,
    _network(),
    Column("name", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("summary", AnyText, nullable=False),
    Column("description", AnyText, nullable=False),
    Column("url", AnyText, nullable=False),
    Column("payment_address", AnyText),
    Column("capabilities", JsonText, nullable=False),
    Column("skills", JsonText, nullable=False),
    Column("tags", JsonText, nullable=False),
    Column("examples", JsonText, nullable=False),
    Column("version", AnyText, nullable=False),
    Column("groups", JsonText, nullable=False),
    Column("responsibilities", JsonText, nullable=False),
    Column("launch", JsonText, nullable=False),
    Column("managed_by", AnyText, nullable=False),
    # Of the network's profiles when it was stored last, so that a reader finds what is new to it.
    Column("revision", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("network", "name"),
    Index(None, "network", "revision"),
)

network_instances = Table(
    "network_instances",
    metadata,
    # The key is the instance alone: it belongs to one network.
    Column("id", AnyText, primary_key=True),
    _network(),
    Column("agent", AnyText, nullable=False),
    Column("job_id", AnyText),
    Column("state", AnyText, nullable=False),
    Column("joined_at", UtcTime, nullable=False),
    Column("last_seen_at", UtcTime),
    Column("capabilities", JsonText, nullable=False),
    Column("ended_at", UtcTime),
    Column("ended_reason", AnyText, nullable=False),
    Column("person", Boolean, nullable=False),
    Index(None, "network", "state"),
)

network_launches = Table(
    "network_launches",
    metadata,
    _network(),
    Column("agent", AnyText, nullable=False),
    Column("job_id", AnyText, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("made", Boolean, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("retry_at", UtcTime),
    Column("reason", AnyText, nullable=False),
    PrimaryKeyConstraint("network", "agent"),
)

network_tasks = Table(
    "network_tasks",
    metadata,
    _network(),
    Column("id", AnyText, nullable=False),
    Column("title", AnyText, nullable=False),
    Column("objective", AnyText, nullable=False),
    Column("acceptance_criteria", JsonText, nullable=False),
    Column("creator", AnyText, nullable=False),
    Column("creator_instance", AnyText, nullable=False),
    Column("call_id", AnyText, nullable=False),
    Column("target", JsonText, nullable=False),
    Column("resource", AnyText),
    Column("state", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("offered_to", JsonText, nullable=False),
    Column("declined_by", JsonText, nullable=False),
    Column("assignee", AnyText),
    Column("assignee_instance", AnyText),
    Column("attempt", Integer, nullable=False),
    Column("lineage", JsonText, nullable=False),
    Column("tasks_below", Integer, nullable=False),
    # What it waits for, as one text: derived from target and resource, so that it can be looked up.
    Column("wanted", AnyText, nullable=False),
    PrimaryKeyConstraint("network", "id"),
    UniqueConstraint("network", "creator_instance", "call_id"),
    Index(None, "network", "updated_at"),
    Index(None, "network", "state", "wanted", "created_at"),
    Index(None, "network", "assignee_instance"),
)

network_task_history = Table(
    "network_task_history",
    metadata,
    Column("number", RowNumber, Identity(), primary_key=True),
    _network(),
    Column("task_id", AnyText, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("state", AnyText, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("agent", AnyText, nullable=False),
    Column("instance_id", AnyText, nullable=False),
    Column("call_id", AnyText, nullable=False),
    Index(None, "network", "task_id", "number"),
)

network_claims = Table(
    "network_claims",
    metadata,
    _network(),
    Column("id", AnyText, nullable=False),
    Column("agent", AnyText, nullable=False),
    Column("instance_id", AnyText, nullable=False),
    Column("scope", JsonText, nullable=False),
    Column("task_id", AnyText),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    PrimaryKeyConstraint("network", "id"),
    Index(None, "network", "expires_at"),
)

network_artifacts = Table(
    "network_artifacts",
    metadata,
    _network(),
    Column("id", AnyText, nullable=False),
    Column("uri", AnyText, nullable=False),
    Column("type", AnyText, nullable=False),
    Column("label", AnyText, nullable=False),
    Column("task_id", AnyText),
    Column("agent", AnyText, nullable=False),
    Column("instance_id", AnyText, nullable=False),
    Column("call_id", AnyText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("network", "id"),
    UniqueConstraint("network", "instance_id", "call_id"),
    Index(None, "network", "task_id"),
)

network_threads = Table(
    "network_threads",
    metadata,
    _network(),
    Column("id", AnyText, nullable=False),
    Column("subject", AnyText, nullable=False),
    Column("participants", JsonText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    # How many signed messages it has; counted by the store, not by the domain.
    Column("messages", BigInteger, nullable=False, server_default="0"),
    PrimaryKeyConstraint("network", "id"),
)

network_messages = Table(
    "network_messages",
    metadata,
    _network(),
    Column("id", AnyText, nullable=False),
    Column("thread_id", AnyText, nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("sender", AnyText, nullable=False),
    Column("sender_instance", AnyText, nullable=False),
    Column("call_id", AnyText, nullable=False),
    Column("body", AnyText, nullable=False),
    Column("subject", AnyText, nullable=False),
    Column("task_id", AnyText),
    Column("resource", AnyText),
    Column("created_at", UtcTime, nullable=False),
    Column("recipients", JsonText, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("key_id", AnyText, nullable=False),
    Column("signature", AnyText, nullable=False),
    PrimaryKeyConstraint("network", "id"),
    UniqueConstraint("network", "sender_instance", "call_id"),
    Index(None, "network", "thread_id", "sequence"),
)

network_requests = Table(
    "network_requests",
    metadata,
    _network(),
    Column("id", AnyText, nullable=False),
    Column("requester", AnyText, nullable=False),
    Column("requester_instance", AnyText, nullable=False),
    Column("call_id", AnyText, nullable=False),
    Column("target", AnyText, nullable=False),
    Column("thread_id", AnyText, nullable=False),
    Column("message_id", AnyText, nullable=False),
    Column("lineage", JsonText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("response_id", AnyText),
    Column("answered_at", UtcTime),
    Column("consumed_call", AnyText, nullable=False),
    PrimaryKeyConstraint("network", "id"),
    UniqueConstraint("network", "requester_instance", "call_id"),
    UniqueConstraint("network", "thread_id"),
    Index(None, "network", "expires_at"),
)

network_deliveries = Table(
    "network_deliveries",
    metadata,
    # Counts up in the order of commits: changes of one network take turns.
    Column("number", RowNumber, Identity(), primary_key=True),
    _network(),
    Column("id", AnyText, nullable=False),
    Column("agent", AnyText, nullable=False),
    Column("instance_id", AnyText),
    Column("sender_instance", AnyText, nullable=False),
    Column("message_id", AnyText),
    Column("task_id", AnyText),
    Column("created_at", UtcTime, nullable=False),
    Column("state", AnyText, nullable=False),
    Column("held_by", AnyText),
    Column("held_call", AnyText, nullable=False),
    Column("handed_out", BigInteger, nullable=False),
    Column("delivered_at", UtcTime),
    UniqueConstraint("network", "id"),
    Index(None, "network", "agent", "state", "number"),
    Index(None, "network", "message_id"),
    Index(None, "network", "task_id"),
)
