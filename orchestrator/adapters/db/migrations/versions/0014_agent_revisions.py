"""Which agents were stored since when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("network_agents", sa.Column("revision", sa.Integer(), nullable=False, server_default="0"))
    op.create_index("ix_network_agents_network_revision", "network_agents", ["network", "revision"])
