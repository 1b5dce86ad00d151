"""The container engine and its worker image, as the settings say."""

from __future__ import annotations

import os

from container.adapters.docker.bounded_disks import BoundedDisks, DiskSize
from container.adapters.docker.discovery import Candidate, candidates, discover
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.image import WorkerImage
from container.adapters.docker.worker_kit import WorkerKit
from container.adapters.docker.worker_starts import WorkerStarts
from container.engine.errors import EngineError
from orchestrator.settings import Settings


async def open_engine(settings: Settings, *, needed: bool = True) -> DockerEngine:
    """The first container engine that answers, as the settings want its sandboxes.

    Args:
        settings: may name one.
        needed: without, the most likely one is answered even when it is silent: it may come back.

    Raises:
        EngineUnavailable: none answers; the message lists what was tried.
        RuntimeUnknown: it does not have the runtime that is set.
    """
    places = engine_places(settings)
    found = await discover(places)
    if found.endpoint is None and not needed:
        return engine_at(settings, places[0].endpoint)
    engine = engine_at(settings, found.require())
    try:
        await engine.describe()
        await engine.sweep()
    except EngineError:
        await engine.close()
        raise
    return engine


def engine_at(settings: Settings, endpoint: str) -> DockerEngine:
    """This engine, as the settings want its sandboxes."""
    size = DiskSize(settings.disk_bytes, settings.disk_files)
    disks = BoundedDisks(settings.home / "disks", size) if settings.disk_bytes else None
    return DockerEngine(endpoint, runtime=settings.sandbox_runtime, disks=disks)


def engine_places(settings: Settings) -> list[Candidate]:
    """Where engines are looked for, the likeliest first."""
    return candidates(
        explicit=settings.engine_url or None, environment=os.environ, home=settings.home, uid=os.getuid()
    )


def worker_image(settings: Settings, engine: DockerEngine) -> WorkerImage:
    """The image that fits this code, on this engine."""
    return WorkerImage(
        engine.connection, cache_dir=settings.cache_dir / "wheels", base=settings.base_image or None
    )


def worker_kit(engine: DockerEngine) -> WorkerKit:
    """The workers that are brought along into other images, on this engine."""
    return WorkerKit(engine.connection)


def starts_of(settings: Settings, engine: DockerEngine) -> WorkerStarts:
    """How the worker is started in the images that jobs name, and in the one of jobs that name none."""
    return WorkerStarts(engine, worker_image(settings, engine), default=settings.image)
