"""The calls of one tool are found without reading those of all."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_audit_tool_name_number", "audit", ["tool_name", "number"])
