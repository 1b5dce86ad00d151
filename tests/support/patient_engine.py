"""An engine for tests that are not about slow engines."""

from __future__ import annotations

from typing import Any

from container.adapters.docker.engine import DockerEngine

_LOADED_S = 60.0


def patient_engine(endpoint: str, **options: Any) -> DockerEngine:
    """An engine whose daemon may be slow: other tests make images and disks beside this one."""
    return DockerEngine(endpoint, quick_s=_LOADED_S, **options)
