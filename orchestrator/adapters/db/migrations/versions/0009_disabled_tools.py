"""Tools that an operator has switched off."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "disabled_tools",
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("original_name", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("owner", "original_name", name="pk_disabled_tools"),
    )
