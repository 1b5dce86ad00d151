"""How the worker is started in an image: as it is there, or brought along."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial

from container.adapters.docker.api import DockerApi, Json
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.image import WORKER_LABEL, WorkerImage
from container.adapters.docker.isolation import KIT
from container.adapters.docker.worker_kit import WorkerKit
from container.engine.errors import LaunchFailed
from container.engine.sandbox import Kit, WorkerStart

IMAGE_ENVIRONMENT = "PORTSIDE_IMAGE_ENVIRONMENT"
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WORKERS_OWN = {
    "HOME": "/state/home",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}


class WorkerStarts:
    """Knows for each image of one engine how a worker is started in it.

    Args:
        default: the image of jobs that name none; empty for the worker image.
    """

    def __init__(self, engine: DockerEngine, worker_image: WorkerImage, *, default: str = "") -> None:
        self._engine = engine
        self._connection = engine.connection
        self._worker_image = worker_image
        self._kit = WorkerKit(engine.connection)
        self._default = default
        self._building = asyncio.Lock()

    async def start_in(self, image: str) -> WorkerStart:
        """How to start the worker in `image`, or in the default one for an empty name; made ready if need be.

        Raises:
            ImageMissing: it is not on this engine and can't be pulled.
            LaunchFailed: it is made for another system or processor.
            EngineError: the worker image, or the kit, can't be made.
        """
        asked = image or self._default
        if not asked:
            return WorkerStart(await self._built())
        await self._engine.prepare(asked)
        seen = await self._connection.quick(partial(_look, image=asked))
        config: Json = seen.get("Config") or {}
        labels: Mapping[str, str] = config.get("Labels") or {}
        if labels.get(WORKER_LABEL) == await asyncio.to_thread(lambda: self._worker_image.sources_digest):
            return WorkerStart(asked)
        worker_image = await self._built()
        refuse_foreign(asked, seen, await self._connection.quick(partial(_look, image=worker_image)))
        kit = Kit(await self._kit.ensure(worker_image), worker_image)
        return WorkerStart(asked, (f"{KIT}/bin/python3", "-P"), kit_environment(config.get("Env") or []), kit)

    async def _built(self) -> str:
        async with self._building:
            return await self._worker_image.ensure()


def kit_environment(image: list[str]) -> dict[str, str]:
    """The worker's environment in an image with these variables.

    What the image says to loaders and interpreters is for the agent's commands, which get it all: the worker
    has it emptied, and carries the whole as one value.
    """
    said = {name: value for name, _, value in (one.partition("=") for one in image)}
    emptied = {name: "" for name in said if name.startswith(("LD_", "GLIBC_", "MALLOC_", "PYTHON"))}
    return {
        **emptied,
        **_WORKERS_OWN,
        "PATH": f"{KIT}/bin:{said.get('PATH') or _DEFAULT_PATH}",
        IMAGE_ENVIRONMENT: json.dumps(said),
    }


def _look(api: DockerApi, image: str) -> Json:
    return api.inspect_image(image)


def refuse_foreign(image: str, seen: Json, own: Json) -> None:
    """Let an image pass that is made for what the worker image is made for.

    Raises:
        LaunchFailed: it is made for another system or processor.
    """
    for what in ("Os", "Architecture"):
        if seen.get(what) != own.get(what):
            raise LaunchFailed(
                f"the image {image} is made for {seen.get(what)}, this engine's worker for {own.get(what)}: "
                f"take the image for {own.get('Os')}/{own.get('Architecture')}"
            )
