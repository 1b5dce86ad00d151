"""Who manages an agent's definition, and the places of people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("network_agents", sa.Column("managed_by", TEXT, nullable=False, server_default=""))
    op.add_column(
        "network_instances", sa.Column("person", sa.Boolean(), nullable=False, server_default=sa.false())
    )
