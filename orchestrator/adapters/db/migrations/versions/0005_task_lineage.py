"""Whose work a task is part of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Tasks from before have no chain that could be known.
NONE = '{"agents": [], "hops": 0, "parents": []}'


def upgrade() -> None:
    op.add_column("network_tasks", sa.Column("lineage", sa.Text(), nullable=False, server_default=NONE))
    op.create_index("ix_network_deliveries_network_task_id", "network_deliveries", ["network", "task_id"])
