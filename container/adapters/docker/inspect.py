"""A look at one container."""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol

from docker.errors import APIError

from container.adapters.docker.api import Json
from container.adapters.docker.faults import words

_TRIES = 5
_JUST_ENDED = "no such process"


class _Inspecting(Protocol):
    def inspect_container(self, container: str) -> Json: ...


def inspect(api: _Inspecting, container: str) -> Json:
    """What the engine says about a container, by id or name.

    Podman refuses with status 500 when the container's process ends while it looks; the next look succeeds.

    Raises:
        NotFound: there is none.
        APIError: the engine's refusal.
    """
    for _ in range(_TRIES - 1):
        try:
            return api.inspect_container(container)
        except APIError as error:
            if error.status_code != HTTPStatus.INTERNAL_SERVER_ERROR or _JUST_ENDED not in words(error):
                raise
    return api.inspect_container(container)
