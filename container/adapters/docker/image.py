"""The worker image: which one this Portside needs, whether it is there, and how it is built."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from docker.errors import APIError

from container.adapters.docker.api import DockerApi, Json
from container.adapters.docker.build_context import Sources, write_context
from container.adapters.docker.connection import Connection
from container.adapters.docker.faults import with_a_fix, words
from container.adapters.docker.host_base import HOST_BASE, HostBase
from container.adapters.docker.packages import install_packages
from container.adapters.docker.pull import find_image, pull_image
from container.adapters.docker.wheels import Libraries, Target
from container.engine.errors import EngineError, ImageMissing

DEFAULT_BASE = "python:3.12-slim"
REPOSITORY = "portside-worker"
WORKER_LABEL = "io.portside.worker"
"""On every worker image and what is built on one; its value is the digest of the worker's sources."""
_BUILD_S = 900.0
_LAST_LINES = 15
_PROBE = (
    "import json, platform, sys; libc = platform.libc_ver();"
    "print(json.dumps(['%d.%d' % sys.version_info[:2], platform.machine(), libc[0] or 'musl', libc[1]]))"
)


@dataclass(frozen=True, slots=True)
class ImageStatus:
    """Whether the image that this Portside's sources make is on the engine.

    Attributes:
        tag: the image that is needed; empty when there is no base image to tell by.
        stale: worker images of other sources.
    """

    tag: str
    present: bool
    stale: tuple[str, ...]

    @property
    def message(self) -> str:
        """One sentence for a person."""
        if self.present:
            return f"the worker image {self.tag} is ready"
        if self.stale:
            return "the worker image is of other sources than this Portside. Build it: portside image build"
        return "there is no worker image. Build it: portside image build"


@dataclass(frozen=True, slots=True)
class ListedImage:
    """A worker image on the engine; a stale one is of other sources than this Portside."""

    tag: str
    size_bytes: int
    stale: bool


class WorkerImage:
    """Builds and finds the worker image on one engine.

    The tag is a digest of everything that goes in: sources, lock and base. Equal parts mean an equal tag, so
    a present tag is never stale and a second build is no work.

    Args:
        base: the base image; None for `python:3.12-slim` or else the host's packages.
        cache_dir: where fetched libraries are kept.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        cache_dir: Path,
        base: str | None = None,
        sources: Sources | None = None,
    ) -> None:
        self._connection = connection
        self._libraries = Libraries(cache_dir)
        self._base = base
        self._sources = sources or Sources.here()
        self._digests: dict[str, str] = {}

    async def status(self) -> ImageStatus:
        """Look, and change nothing."""
        tags = await self._connection.quick(_worker_tags)
        for base in self._bases():
            base_id = await self._connection.quick(lambda api, base=base: find_image(api, base))
            if base_id is not None and (tag := self._tag(base_id)) in tags:
                return ImageStatus(tag=tag, present=True, stale=tuple(t for t in tags if t != tag))
        return ImageStatus(tag="", present=False, stale=tuple(tags))

    async def list(self) -> list[ListedImage]:
        """Every worker image on the engine, sorted by tag."""
        fitting = (await self.status()).tag

        def look(api: DockerApi) -> list[ListedImage]:
            return [
                ListedImage(tag, int(api.inspect_image(tag)["Size"]), stale=tag != fitting)
                for tag in _worker_tags(api)
            ]

        return await self._connection.quick(look)

    async def ensure(self, say: Callable[[str], None] = lambda _line: None, *, force: bool = False) -> str:
        """The image's tag, built when it is not there.

        Args:
            say: told what is being done, a line at a time, from another thread too.
            force: build it again although it is there.

        Raises:
            ImageMissing: no base image can be had.
            EngineError: the libraries can't be fetched, or the build failed; with its last lines.
        """
        status = await self.status()
        if status.present and not force:
            return status.tag
        base, base_id = await self._ensure_base(say)
        tag = self._tag(base_id)
        if force or await self._connection.quick(lambda api: find_image(api, tag)) is None:
            target = await self._connection.slow(lambda api: _probe(api, base_id))
            say(f"fetching the worker's libraries for Python {target.python} on {target.machine}")
            libraries = await asyncio.to_thread(self._libraries.fetch, self._sources, target)
            say(f"building {tag} on {base}")
            await self._connection.slow(
                lambda api: self._build(api, base, tag, libraries, anew=force), deadline_s=_BUILD_S
            )
        return tag

    async def remove_stale(self) -> list[str]:
        """Remove the worker images of other sources, but those that a container is of; answers their tags."""
        status = await self.status()
        return await self._connection.slow(partial(_remove_images, tags=status.stale))

    @property
    def sources_digest(self) -> str:
        """What the label of an image says whose worker is of these sources; reads them all."""
        return self._sources.digest("")

    def _bases(self) -> tuple[str, ...]:
        return (self._base,) if self._base else (DEFAULT_BASE, HOST_BASE)

    def _tag(self, base_id: str) -> str:
        """What is read once holds: code that changes under a running process is not the code that runs."""
        if base_id not in self._digests:
            self._digests[base_id] = self._sources.digest(base_id)
        return f"{REPOSITORY}:{self._digests[base_id]}"

    async def _ensure_base(self, say: Callable[[str], None]) -> tuple[str, str]:
        wanted = self._base or DEFAULT_BASE
        base_id = await self._connection.quick(lambda api: find_image(api, wanted))
        if base_id is None:
            say(f"pulling {wanted}")
            try:
                await self._connection.slow(lambda api: pull_image(api, wanted), deadline_s=_BUILD_S)
            except ImageMissing as error:
                if self._base is not None:
                    raise
                say(f"{error.message}; making a base of this host's packages instead")
                wanted = await self._connection.slow(HostBase(install_packages).ensure, deadline_s=_BUILD_S)
            base_id = await self._connection.quick(lambda api: find_image(api, wanted))
        if base_id is None:
            raise ImageMissing(f"the base image {wanted} is not on this engine")
        return wanted, base_id

    def _build(self, api: DockerApi, base: str, tag: str, libraries: Path, *, anew: bool) -> None:
        with tempfile.TemporaryFile() as context:
            write_context(context, self._sources, libraries)
            context.seek(0)
            lines = api.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs={"BASE_IMAGE": base},
                labels={WORKER_LABEL: self.sources_digest},
                # a private engine has no bridge; the one step that may need a network runs apt
                network_mode="host",
                nocache=anew,
                rm=True,
                forcerm=True,
                decode=True,
                use_config_proxy=False,
            )
            _follow(lines)


def _follow(lines: Iterator[Json]) -> None:
    """Read the build's output; the classic builder reports a failure inside the stream."""
    last: list[str] = []
    failed = False
    for line in lines:  # to its end also after a failure: only then is the connection given back
        text = str(line.get("stream") or line.get("error") or "").strip()
        failed = failed or "error" in line
        if text:
            last = [*last, text][-_LAST_LINES:]
    if failed:
        raise EngineError("the worker image could not be built:\n" + with_a_fix("\n".join(last)))


def _probe(api: DockerApi, base_id: str) -> Target:
    """Ask the base's Python what it is, in a container that is thrown away."""
    created = api.create_container(
        base_id,
        command=["python3", "-c", _PROBE],
        entrypoint=[],
        use_config_proxy=False,
        host_config={"NetworkMode": "none", "CapDrop": ["ALL"], "ReadonlyRootfs": True},
    )["Id"]
    try:
        api.start(created)
        api.wait(created)
        answer = api.logs(created, stdout=True, stderr=False, stream=False)
        return Target(*json.loads(answer))
    except (APIError, ValueError, TypeError) as error:
        detail = words(error) if isinstance(error, APIError) else "its Python did not answer"
        raise EngineError(f"the base image has no usable python3 ({detail})") from error
    finally:
        api.remove_container(created, force=True, v=True)


def _remove_images(api: DockerApi, tags: Iterable[str]) -> list[str]:
    removed: list[str] = []
    for tag in tags:
        try:
            api.remove_image(tag)
        except APIError:
            continue  # in use, or gone meanwhile
        removed.append(tag)
    return removed


def _worker_tags(api: DockerApi) -> list[str]:
    tags: list[str] = [tag for row in api.images(name=REPOSITORY) for tag in row.get("RepoTags") or ()]
    # Podman shows short names with the registry it would ask for them
    short = (tag.removeprefix("docker.io/library/").removeprefix("localhost/") for tag in tags)
    return sorted(tag for tag in short if tag.startswith(f"{REPOSITORY}:"))
