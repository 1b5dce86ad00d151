"""How many tasks were made for a piece of work."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("network_tasks", sa.Column("tasks_below", sa.Integer(), nullable=False, server_default="0"))
