"""What a job has spent on its model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("model_requests", "tokens_used"):
        op.add_column("jobs", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
