"""Images by name: looked up on the engine, or pulled from a registry. These block."""

from __future__ import annotations

from typing import Any

from docker.errors import APIError, NotFound

from container.adapters.docker.api import DockerApi
from container.adapters.docker.faults import words
from container.engine.errors import ImageMissing


def find_image(api: DockerApi, image: str) -> str | None:
    """The image's id; None when it is not on this engine."""
    try:
        found: dict[str, Any] = api.inspect_image(image)
    except NotFound:
        return None
    return str(found["Id"])


def pull_image(api: DockerApi, image: str) -> None:
    """Pull an image.

    Raises:
        ImageMissing: no registry gives it.
    """
    repository, tag = _split(image)
    try:
        lines = list(api.pull(repository, tag=tag, stream=True, decode=True))
    except APIError as error:
        raise ImageMissing(f"the image {image} can't be pulled: {words(error)}") from error
    for line in lines:
        if "error" in line:
            raise ImageMissing(f"the image {image} can't be pulled: {line['error']}")


def _split(image: str) -> tuple[str, str | None]:
    """Repository and tag; a digest stays with the repository, a port is no tag."""
    name, colon, tag = image.rpartition(":")
    if "@" in image:
        return image, None
    return (name, tag) if colon and "/" not in tag else (image, "latest")
