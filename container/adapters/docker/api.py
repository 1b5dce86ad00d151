"""The part of the SDK's client that is used here, with types: its stubs leave most answers unknown."""

# ruff: noqa: D102 -- the SDK documents its own calls

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any, Protocol

import requests

Json = dict[str, Any]


class DockerApi(Protocol):
    """What `docker.APIClient` offers; every call blocks; a refusal is `docker.errors.APIError`."""

    base_url: str
    timeout: float

    @property
    def api_version(self) -> str: ...

    def close(self) -> None: ...

    def get(
        self, url: str, *, params: Mapping[str, Any], stream: bool, timeout: float
    ) -> requests.Response: ...

    def info(self) -> Json: ...

    def version(self, api_version: bool = True) -> Json: ...  # noqa: FBT001, FBT002 -- the SDK's own signature

    def events(self, *, decode: bool, filters: Json) -> EventStream: ...

    def create_container(self, image: str, **config: Any) -> Json: ...

    def start(self, container: str) -> None: ...

    def kill(self, container: str, signal: str) -> None: ...

    def wait(self, container: str) -> Json: ...

    def logs(self, container: str, *, stdout: bool, stderr: bool, stream: bool) -> bytes: ...

    def inspect_container(self, container: str) -> Json: ...

    def containers(self, *, all: bool, filters: Json) -> list[Json]: ...

    def remove_container(self, container: str, *, v: bool, force: bool) -> None: ...

    def volumes(self, filters: Json) -> Json: ...

    def remove_volume(self, name: str) -> None: ...

    def inspect_image(self, image: str) -> Json: ...

    def images(self, name: str | None = None, *, filters: Json | None = None) -> list[Json]: ...

    def pull(self, repository: str, *, tag: str | None, stream: bool, decode: bool) -> Iterator[Json]: ...

    def build(self, *, fileobj: IO[bytes], tag: str, **options: Any) -> Iterator[Json]: ...

    def import_image_from_stream(
        self, stream: IO[bytes], *, repository: str, tag: str, changes: list[str]
    ) -> str: ...


class EventStream(Protocol):
    """An endless answer that another thread may end."""

    def __iter__(self) -> Iterator[Json]: ...

    def close(self) -> None: ...
