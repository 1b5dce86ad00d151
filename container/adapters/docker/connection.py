"""The Docker SDK's blocking calls, off the event loop and each with a deadline."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from docker import APIClient
from docker.errors import APIError, DockerException
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from container.adapters.docker.api import DockerApi
from container.adapters.docker.faults import no_answer, socket_path, unavailable
from container.engine.errors import EngineUnavailable

T = TypeVar("T")

QUICK_S = 10.0  # a daemon on a busy disk takes seconds for a look
SLOW_S = 60.0
_THREADS = 4
_OLDEST_API = "1.41"


class Connection:
    """One engine's socket.

    Two small thread pools: looking never waits behind making. A deadline counts from the moment the call is
    asked for, so callers queued behind an engine that hangs fail in time too.
    """

    def __init__(self, endpoint: str, *, quick_s: float = QUICK_S, slow_s: float = SLOW_S) -> None:
        self.endpoint = endpoint
        self.quick_s = quick_s
        self.slow_s = slow_s
        self._quick = ThreadPoolExecutor(_THREADS, thread_name_prefix="engine-quick")
        self._slow = ThreadPoolExecutor(_THREADS, thread_name_prefix="engine-slow")
        self._clients: dict[float, DockerApi] = {}
        self._lock = threading.Lock()

    async def quick(self, call: Callable[[DockerApi], T]) -> T:
        """Run a call that only looks.

        Raises:
            EngineUnavailable: no answer in time.
            APIError: the engine's refusal.
        """
        return await self._run(self._quick, call, self.quick_s)

    async def slow(self, call: Callable[[DockerApi], T], *, deadline_s: float | None = None) -> T:
        """Run a call that makes or removes something; `Raises` as `quick`."""
        return await self._run(self._slow, call, deadline_s or self.slow_s)

    def client(self, timeout_s: float) -> DockerApi:
        """A client whose every socket read ends after `timeout_s`; blocks, so call it in a thread."""
        with self._lock:
            known = self._clients.get(timeout_s)
        if known is not None:
            return known
        made = connect(self.endpoint, timeout_s, first_answer_s=self.quick_s)
        with self._lock:
            return self._clients.setdefault(timeout_s, made)

    async def close(self) -> None:
        """Let go of threads and sockets; a call under way ends by its own deadline."""
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            client.close()

    async def _run(self, pool: ThreadPoolExecutor, call: Callable[[DockerApi], T], deadline_s: float) -> T:
        def blocking() -> T:
            try:
                _knock(self.endpoint, self.quick_s)
                return call(self.client(deadline_s))
            except APIError:
                raise
            except (RequestException, DockerException, HTTPError, OSError) as error:
                raise unavailable(self.endpoint, error, deadline_s) from error

        future = asyncio.get_running_loop().run_in_executor(pool, blocking)
        try:
            # The extra second lets the socket's own time-out speak first: it knows more.
            async with asyncio.timeout(deadline_s + 1):
                return await future
        except TimeoutError as error:
            raise no_answer(self.endpoint, deadline_s) from error


def connect(endpoint: str, timeout_s: float, *, first_answer_s: float = QUICK_S) -> DockerApi:
    """A client that speaks the engine's own API version.

    Raises:
        EngineUnavailable: nothing answers, or not within `first_answer_s`.
    """
    try:
        _knock(endpoint, first_answer_s)
        probe = _client(endpoint, first_answer_s, _OLDEST_API)
        try:
            version = str(probe.version(api_version=False)["ApiVersion"])
        finally:
            probe.close()
        return _client(endpoint, timeout_s, version)
    except (RequestException, DockerException, HTTPError, OSError) as error:
        raise unavailable(endpoint, error, first_answer_s) from error
    except KeyError as error:
        raise EngineUnavailable(f"{endpoint} answers, but not as a container engine does") from error


def _knock(endpoint: str, timeout_s: float) -> None:
    """Connect and hang up: says plainly why nobody is there, where the SDK would leave a socket open."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.settimeout(timeout_s)
        knocking.connect(str(socket_path(endpoint)))


def _client(endpoint: str, timeout_s: float, version: str) -> DockerApi:
    client: Any = APIClient(base_url=endpoint, version=version, timeout=cast("int", timeout_s))
    client.trust_env = False  # proxies and CA bundles of the environment are not for a local socket
    return client
