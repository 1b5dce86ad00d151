"""The schema's revision: which one there is, which one is wanted, and the way from one to the other.

Blocking; `Database` runs these off the event loop.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import URL

from orchestrator.adapters.db.engines import migrating_engine
from orchestrator.ports.errors import SchemaTooNew

_LOCK_S = 120.0
_ADVISORY_LOCK = 0x706F727473696465  # "portside"


def upgrade(url: URL, revision: str = "head") -> None:
    """Run the missing migrations up to `revision`, in one transaction: all of them happen, or none.

    Processes that start together take turns: PostgreSQL by an advisory lock, SQLite by its write lock.

    Raises:
        SchemaTooNew: the database's revision is not one of ours.
    """
    engine = migrating_engine(url, lock_s=_LOCK_S)
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
            present = found(connection)
            if present is not None and present not in _revisions():
                raise SchemaTooNew(
                    f"the database is at revision {present}, unknown to this version: update Portside"
                )
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    finally:
        engine.dispose()


def found(connection: Connection) -> str | None:
    """The database's revision; None when it has no tables yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.scalar(text("SELECT version_num FROM alembic_version"))


@cache
def wanted() -> str:
    """The newest revision in this package."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None, "the package holds no migrations"
    return head


def _revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
