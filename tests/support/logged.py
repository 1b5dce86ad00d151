"""What the service writes to its log, as it writes it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
import structlog

from orchestrator.logs import log_to


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """The log at debug level, from everybody."""
    root, config = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    log_to(stream, level=logging.DEBUG)
    yield stream
    root.handlers, root.level = handlers, level
    structlog.configure(**config)
