"""Fixtures that every test may use."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.support.stores"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
