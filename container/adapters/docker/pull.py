"""Images by name: looked up on the engine, or pulled from a registry. These block."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from docker.errors import APIError, NotFound

from container.adapters.docker.api import DockerApi
from container.adapters.docker.faults import words
from container.engine.errors import ImageMissing


def find_image(api: DockerApi, image: str) -> str | None:
    """The image's id; None when it is not on this engine.

    Raises:
        ImageMissing: this can't be an image's name.
    """
    try:
        found: dict[str, Any] = api.inspect_image(image)
    except NotFound:
        return None
    except APIError as error:
        if error.status_code != HTTPStatus.BAD_REQUEST:
            raise
        raise ImageMissing(f"{image!r} can't be an image's name: {words(error)}") from error
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
        raise _missing(image, words(error)) from error
    for line in lines:
        if "error" in line:
            raise _missing(image, str(line["error"]))


def _missing(image: str, why: str) -> ImageMissing:
    return ImageMissing(
        f"the image {image} is not on this engine and can't be pulled: {why}. "
        f"Check its name, or bring it to this engine: docker build --tag {image} DIRECTORY, or docker load"
    )


def _split(image: str) -> tuple[str, str | None]:
    """Repository and tag; a digest stays with the repository, a port is no tag."""
    name, colon, tag = image.rpartition(":")
    if "@" in image:
        return image, None
    return (name, tag) if colon and "/" not in tag else (image, "latest")
