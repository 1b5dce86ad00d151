"""Fixtures that every test may use."""

from __future__ import annotations

import pytest

_ID_CHARS = 80

pytest_plugins = [
    "tests.support.bare_image",
    "tests.support.command_line",
    "tests.support.docker_engine",
    "tests.support.logged",
    "tests.support.npm",
    "tests.support.podman_engine",
    "tests.support.orchestrator",
    "tests.support.public_servers",
    "tests.support.sdk_wheels",
    "tests.support.stores",
    "tests.support.tool_box",
    "tests.support.tool_workspace",
    "tests.support.wasm.projects",
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value's first characters: a test's name stands in its environment, where a megabyte has no place."""
    if not isinstance(val, str | bytes) or len(val) <= _ID_CHARS:
        return None
    return f"{val[:_ID_CHARS]!a}({len(val)})"
