"""The orchestrator is killed at random moments while agents talk: nothing is lost, nothing comes twice (WN-3)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.support.command_line import CommandLine
from tests.support.homes import remove_sockets
from tests.support.storm import storm

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(400)]

SEED = 20


def test_kills_at_random_moments_lose_nothing_and_repeat_nothing(
    tmp_path: Path, docker_endpoint: str
) -> None:
    """BR-123, BR-124, BR-126: asks, replies and tasks of two agents over three kills of `portside serve`.

    `python -m tests.support.storm` does the same for longer, with other seeds, and on PostgreSQL.
    """
    home = tmp_path / "home"
    command_line = CommandLine(home, {"PORTSIDE_ENGINE_URL": docker_endpoint})
    try:
        record, verdict = anyio.run(lambda: storm(command_line, kills=3, seed=SEED))
    finally:
        remove_sockets(home)
    assert record.faults() == []
    assert all(record.known.get(kind) for kind in ("ask", "reply", "task")), record.summary()
    assert verdict["faults"] == []
