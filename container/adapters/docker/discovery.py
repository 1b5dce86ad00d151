"""Which engine to use: the first candidate that answers, and why each of the others does not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from container.adapters.docker.connection import QUICK_S, connect
from container.adapters.docker.faults import START_ONE
from container.engine.errors import EngineUnavailable

ASKED_FOR = "the engine setting"
START_THAT = "Start Docker or Podman there, or unset PORTSIDE_ENGINE_URL: then others are looked for"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where an engine may answer, and who says so."""

    source: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found.

    Attributes:
        endpoint: the first that answers; None when none does.
        source: where that endpoint is from.
        silent: the candidates tried before it, each with the reason.
    """

    endpoint: str | None
    source: str
    silent: tuple[tuple[Candidate, str], ...]

    def require(self) -> str:
        """The endpoint.

        Raises:
            EngineUnavailable: none answers; one line for each that was tried.
        """
        if self.endpoint is None:
            tried = "\n".join(
                f"  {at.source}: {reason.removesuffix(START_ONE).rstrip()}" for at, reason in self.silent
            )
            only = [at.source for at, _ in self.silent] == [ASKED_FOR]
            raise EngineUnavailable(
                f"no container engine answers. {START_THAT if only else START_ONE}\n{tried}"
            )
        return self.endpoint


def candidates(
    *, explicit: str | None, environment: Mapping[str, str], home: Path, uid: int
) -> list[Candidate]:
    """Where to look, in order: Docker's and Podman's usual sockets, then Portside's own.

    An engine that was asked for (`explicit`) is the only one: no other is taken in its place.
    """
    if explicit:
        return [Candidate(ASKED_FOR, explicit)]
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}")
    places = [
        ("DOCKER_HOST", environment.get("DOCKER_HOST")),
        ("Docker", "unix:///var/run/docker.sock"),
        ("rootless Docker", f"unix://{runtime / 'docker.sock'}"),
        ("Podman", "unix:///run/podman/podman.sock"),
        ("rootless Podman", f"unix://{runtime / 'podman' / 'podman.sock'}"),
        ("Portside's own engine", f"unix://{home / 'engine' / 'docker.sock'}"),
    ]
    return [Candidate(source, endpoint) for source, endpoint in places if endpoint]


async def discover(where: list[Candidate], *, answer_s: float = QUICK_S) -> Discovery:
    """Ask them in order, each for at most `answer_s` seconds."""
    silent: list[tuple[Candidate, str]] = []
    for candidate in where:
        try:
            await asyncio.to_thread(_ask, candidate.endpoint, answer_s)
        except EngineUnavailable as error:
            silent.append((candidate, error.message))
        else:
            return Discovery(candidate.endpoint, candidate.source, tuple(silent))
    return Discovery(None, "", tuple(silent))


def _ask(endpoint: str, answer_s: float) -> None:
    connect(endpoint, answer_s, first_answer_s=answer_s).close()
