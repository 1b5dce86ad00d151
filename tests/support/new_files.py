"""What a process does with a database file that may be new."""

from __future__ import annotations

from orchestrator.adapters.db.engines import migrating_engine, parse_url


def written_mode(url: str) -> str:
    """Write to it; answers its journal mode."""
    engine = migrating_engine(parse_url(url), lock_s=20.0)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS t (a)")
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
    engine.dispose()
    return str(mode)
