"""Agents that are started for their work, and signatures on messages; older messages stay unsigned."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.DateTime(timezone=True), "postgresql")

_TARGETS = (("instance", "instance_id"), ("agent", "agent"), ("group", "group"))


def upgrade() -> None:
    op.create_table(
        "network_launches",
        sa.Column("network", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("job_id", TEXT, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("made", sa.Boolean(), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("retry_at", TIME),
        sa.Column("reason", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("network", "agent", name=op.f("pk_network_launches")),
    )
    messages = (
        sa.Column("recipients", sa.Text(), nullable=False, server_default="[]"),
        sa.Column("sequence", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("key_id", TEXT, nullable=False, server_default=""),
        sa.Column("signature", TEXT, nullable=False, server_default=""),
    )
    for column in messages:
        op.add_column("network_messages", column)
    op.create_index(
        op.f("ix_network_messages_network_thread_id_sequence"),
        "network_messages",
        ["network", "thread_id", "sequence"],
    )
    op.add_column(
        "network_threads", sa.Column("messages", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.add_column("network_tasks", sa.Column("wanted", TEXT, nullable=False, server_default=""))
    say_what_tasks_wait_for()
    op.drop_index(op.f("ix_network_tasks_network_state"), "network_tasks")
    op.create_index(
        op.f("ix_network_tasks_network_state_wanted_created_at"),
        "network_tasks",
        ["network", "state", "wanted", "created_at"],
    )
    op.create_index(
        op.f("ix_network_tasks_network_assignee_instance"),
        "network_tasks",
        ["network", "assignee_instance"],
    )
    op.add_column("signing_keys", sa.Column("purpose", TEXT, nullable=False, server_default="tokens"))


def say_what_tasks_wait_for() -> None:
    """Of those from before, as the domain says it."""
    tasks = sa.table(
        "network_tasks",
        sa.column("network"),
        sa.column("id"),
        sa.column("target"),
        sa.column("resource"),
        sa.column("wanted"),
    )
    connection = op.get_bind()
    for network, task_id, target, resource in connection.execute(
        sa.select(tasks.c.network, tasks.c.id, tasks.c.target, tasks.c.resource)
    ).all():
        named = json.loads(target)
        found = [f"{what} {named[key]}" for what, key in _TARGETS if named.get(key) is not None]
        found += [f"resource {resource}"] if resource is not None else []
        same = sa.and_(tasks.c.network == network, tasks.c.id == task_id)
        connection.execute(tasks.update().where(same).values(wanted=next(iter(found), "")))
