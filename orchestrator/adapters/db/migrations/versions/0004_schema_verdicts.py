"""Each call's schema verdict, what broke the schema and where, and what was changed of the arguments."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
UNCHECKED = ("tool_not_found", "tool_not_hosted", "internal")


def upgrade() -> None:
    op.add_column("audit", sa.Column("schema_verdict", TEXT, nullable=False, server_default="fits"))
    op.add_column("audit", sa.Column("violations", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("audit", sa.Column("adjustments", sa.Text(), nullable=False, server_default="[]"))
    keep_what_is_known()
    op.drop_column("audit", "rules")


def keep_what_is_known() -> None:
    """Rows from before have the verdict's code and the broken rules, not where they were broken."""
    audit = sa.table(
        "audit",
        sa.column("number"),
        sa.column("verdict"),
        sa.column("rules"),
        sa.column("schema_verdict"),
        sa.column("violations"),
    )
    connection = op.get_bind()
    connection.execute(
        audit.update().where(audit.c.verdict == "invalid_params").values(schema_verdict="violates")
    )
    connection.execute(
        audit.update().where(audit.c.verdict.in_(UNCHECKED)).values(schema_verdict="unchecked")
    )
    broken = connection.execute(sa.select(audit.c.number, audit.c.rules).where(audit.c.rules != "[]"))
    for number, rules in broken.all():
        violations = [
            {"pointer": "", "rule": rule, "message": "", "expected": None, "got": None}
            for rule in json.loads(rules)
        ]
        connection.execute(
            audit.update().where(audit.c.number == number).values(violations=json.dumps(violations))
        )
