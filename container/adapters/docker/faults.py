"""Why an engine does not answer, in words that name the fix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docker.errors import APIError
from requests.exceptions import Timeout

from container.engine.errors import EngineUnavailable

SCHEME = "unix://"
START_ONE = "Start Docker (systemctl start docker), or let Portside start an engine: portside doctor --fix"
_WORDS = 500
_FULL = "no space left on device"


def socket_path(endpoint: str) -> Path:
    """The file of a `unix://` endpoint.

    Raises:
        EngineUnavailable: the endpoint is of another kind.
    """
    if not endpoint.startswith(SCHEME):
        raise EngineUnavailable(
            f"{endpoint} is not supported: a job reaches the orchestrator over a unix socket, which can't "
            "cross to another machine. Use an engine on this machine (unix:///path/to/docker.sock)."
        )
    return Path(endpoint.removeprefix(SCHEME))


def unavailable(endpoint: str, error: BaseException, deadline_s: float) -> EngineUnavailable:
    """Tell no socket, no permission, nobody there and no answer apart."""
    chain = list(_chain(error))
    path = endpoint.removeprefix(SCHEME)
    if _any(chain, FileNotFoundError):
        return EngineUnavailable(f"no container engine at {path}: the socket does not exist. {START_ONE}")
    if _any(chain, PermissionError):
        return EngineUnavailable(
            f"permission denied on {path}. Add yourself to the group that owns the socket "
            '(usermod -aG docker "$USER", then log in again), or use rootless Podman.'
        )
    if _any(chain, ConnectionRefusedError):
        return EngineUnavailable(
            f"nobody listens on {path}: the engine has stopped. Start it: systemctl start docker"
        )
    if any(
        _any(chain, kind) for kind in (TimeoutError, Timeout, BlockingIOError)
    ):  # EAGAIN: its queue is full
        return no_answer(endpoint, deadline_s)
    return EngineUnavailable(f"the engine at {path} broke the connection: {error}. Try again.")


def no_answer(endpoint: str, deadline_s: float) -> EngineUnavailable:
    """The socket takes the call and nothing comes back."""
    path = endpoint.removeprefix(SCHEME)
    return EngineUnavailable(
        f"the engine at {path} accepts calls and did not answer within {deadline_s:g} s: it hangs. "
        "Restart it: systemctl restart docker"
    )


def words(error: APIError) -> str:
    """The engine's own explanation, on one line, and not longer than one is read."""
    text = with_a_fix(" ".join(str(error.explanation or error).split()))
    return text if len(text) <= _WORDS else f"{text[: _WORDS // 2]} ... {text[-_WORDS // 2 :]}"


def with_a_fix(said: str) -> str:
    """What an engine said, or, where that helps nobody, what to do."""
    if _FULL in said:
        return "the engine's disk is full: make room where it keeps its data (docker info names the place)"
    return said


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error with its causes; requests and urllib3 also carry the cause as an argument."""
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        current = todo.pop()
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        todo.extend([current.__cause__, current.__context__, getattr(current, "reason", None), *current.args])


def _any(chain: list[BaseException], kind: type[BaseException]) -> bool:
    return any(isinstance(link, kind) for link in chain)
