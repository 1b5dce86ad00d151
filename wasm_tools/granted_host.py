"""The host of one call: what its tool's sidecar grants, and nothing else.

A call runs on a thread of its own; secrets, files and other tools are reached through the event loop that
it was started from. Whatever a host function waits for ends with the time that the call has left, and at
once when the call is over.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from tool_registry.arguments import parse_arguments
from tool_registry.clock import Clock
from tool_registry.context import ToolContext
from tool_registry.errors import CallError, InvalidParams
from tool_registry.output import ToolOutput
from tool_registry.rate_limit import RateLimiter
from tool_registry.tool import RateLimit
from wasm_tools.addresses import is_public
from wasm_tools.grants import Grants
from wasm_tools.host import HostDenied, HttpRequest, HttpResponse
from wasm_tools.http_gate import HttpGate, HttpOutside
from wasm_tools.limits import Limits

T = TypeVar("T")
MAX_WORKSPACE_FILE_BYTES = 1 << 20
_MAX_DEPTH = 4
_CHAIN: ContextVar[tuple[str, ...]] = ContextVar("portside_wasm_chain", default=())
"""The guests that called one another down to here."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Invoke = Callable[[str, dict[str, Any], ToolContext], Awaitable[ToolOutput]]


async def look_up(host: str, port: int, *, threads: Executor | None = None) -> Sequence[str]:
    """The addresses of a host, by the system's resolver.

    Args:
        host: its name.
        port: of the service there.
        threads: on which it waits; None takes the event loop's, which serve everything else too.

    Raises:
        OSError: it has none.
    """
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(threads, ask)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def _no_file(_job_id: str, _path: str, _limit_bytes: int) -> bytes | None:
    return None


async def _no_tool(_name: str, _params: dict[str, Any], _context: ToolContext) -> ToolOutput:
    raise HostDenied("no tool can be called from here")


async def _no_secret(_name: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Outside:
    """What grants lead to.

    Attributes:
        secret: a secret's value by its name; None when it is not there.
        file: a file of a job's starting workspace by job and path, read up to one byte over the given
            limit; None when it is not there.
        invoke: runs a call of another tool for the same caller; raises CallError.
        resolve: the addresses of a host; raises OSError.
        tls: which certificates are believed.
        public: which addresses are the open internet's.
    """

    secret: Callable[[str], Awaitable[str | None]] = _no_secret
    file: Callable[[str, str, int], Awaitable[bytes | None]] = _no_file
    invoke: Invoke = _no_tool
    resolve: Resolve = look_up
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    public: Callable[[str], bool] = is_public


class GrantedHosts:
    """Makes the host of each call of one tool; the rate of its requests is counted over all of them."""

    def __init__(self, name: str, grants: Grants, limits: Limits, outside: Outside, clock: Clock) -> None:
        self._name = name
        self._grants = grants
        self._limits = limits
        self._outside = outside
        self._clock = clock
        self._limiter = RateLimiter(clock.monotonic)
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None

    def open(self, context: ToolContext) -> GrantedHost:
        """The host of a call that is about to start; close it when the call is over. In the event loop."""
        if self._tls is None:
            self._tls = self._outside.tls()
        return GrantedHost(
            self._grants,
            self._limits,
            self._outside,
            _Caller(context, self._name, self._clock, (*_CHAIN.get(), self._name)),
            tls=self._tls,
            wait_s=lambda: self._wait_s(context.job_id),
        )

    def _wait_s(self, job_id: str) -> float | None:
        rate = self._grants.http.rate_limit
        if rate is None:
            return None
        with self._lock:
            return self._limiter.take((job_id, self._name), RateLimit(rate.calls, rate.per_s))


@dataclass(frozen=True, slots=True)
class _Caller:
    """On whose behalf: the call's context, and the guests above it with itself."""

    context: ToolContext
    name: str
    clock: Clock
    chain: tuple[str, ...]


class GrantedHost:
    """One call's host functions, on the call's thread."""

    def __init__(
        self,
        grants: Grants,
        limits: Limits,
        outside: Outside,
        caller: _Caller,
        *,
        tls: ssl.SSLContext,
        wait_s: Callable[[], float | None],
    ) -> None:
        self._grants = grants
        self._outside = outside
        self._caller = caller
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._closed = False
        self._waiting: Future[Any] | None = None
        self._socket: socket.socket | None = None
        self._invoked = 0
        ways = HttpOutside(self._resolve, self._secret, wait_s, tls, self._opened, outside.public)
        self._gate = HttpGate(grants.http, limits, ways)

    def close(self) -> None:
        """End whatever still waits: the call is over. From any thread."""
        with self._lock:
            self._closed = True
            if self._waiting is not None:
                self._waiting.cancel()
            if self._socket is not None:
                _shut_down(self._socket)

    def secret_exists(self, name: str, remaining_s: float) -> bool:
        """Whether a secret is there, for the names that are granted; others never exist."""
        if name not in self._grants.secrets.exists:
            return False
        return self._secret(name, remaining_s) is not None

    def workspace_read(self, path: str, remaining_s: float) -> str | None:
        """A text file of the job's starting workspace; None when it is not granted or not there.

        Raises:
            HostDenied: it is no UTF-8 text, or over 1 MiB.
        """
        plain = PurePosixPath(path)
        if not path or "\0" in path or plain.is_absolute() or ".." in plain.parts:
            return None
        if not any(_is_under(plain, granted) for granted in self._grants.workspace.read):
            return None
        job_id = self._caller.context.job_id
        data = self._await(
            lambda: self._outside.file(job_id, str(plain), MAX_WORKSPACE_FILE_BYTES), remaining_s
        )
        if data is None:
            return None
        if len(data) > MAX_WORKSPACE_FILE_BYTES:
            raise HostDenied(f"{path[:200]} is over {MAX_WORKSPACE_FILE_BYTES >> 20} MiB")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise HostDenied(f"{path[:200]} is not UTF-8 text") from None

    def http_request(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
        """Send a request through the gate.

        Raises:
            HostDenied: it is not granted, or it failed.
            OverLimit: as `HttpGate.send`.
        """
        if not self._grants.http.allow:
            raise HostDenied("not granted: this tool may not send HTTP requests")
        return self._gate.send(request, remaining_s)

    def tool_invoke(self, alias: str, params_json: str, remaining_s: float) -> str:
        """Call another tool for the same caller, as if it had called it itself.

        Raises:
            HostDenied: it is not granted, refused, or it failed; the message is its own.
        """
        name = self._grants.tools.get(alias)
        if name is None:
            raise HostDenied(f"not granted: this tool has no other tool under the name {alias[:100]!r}")
        chain = self._caller.chain
        if name in chain or len(chain) >= _MAX_DEPTH:
            raise HostDenied(f"{name} can't be called: {' > '.join(chain)} > {name} goes round or too deep")
        params = _params(params_json)
        self._invoked += 1
        context = replace(
            self._caller.context.until(self._caller.clock.monotonic() + remaining_s),
            call_id=f"{self._caller.context.call_id}/{self._invoked}",
        )
        output = self._await(lambda: self._invoke(name, params, context), remaining_s)
        if output.is_error:
            raise HostDenied(output.text())
        return output.text()

    async def _invoke(self, name: str, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        _CHAIN.set(self._caller.chain)  # this runs in a task of its own
        try:
            return await self._outside.invoke(name, params, context)
        except CallError as error:
            raise HostDenied(f"{error.code}: {error.message}") from None

    def _secret(self, name: str, remaining_s: float) -> str | None:
        return self._await(lambda: self._outside.secret(name), remaining_s)

    def _resolve(self, host: str, port: int, remaining_s: float) -> Sequence[str]:
        return self._await(lambda: self._outside.resolve(host, port), remaining_s)

    def _await(self, work: Callable[[], Awaitable[T]], remaining_s: float) -> T:
        """Wait on this thread for what the event loop does."""
        with self._lock:
            if self._closed:
                raise HostDenied("the call is over")
            future = asyncio.run_coroutine_threadsafe(_bounded(work, remaining_s), self._loop)
            self._waiting = future
        try:
            return future.result()
        except TimeoutError:
            raise HostDenied("the time of the call is over") from None
        except CancelledError:
            raise HostDenied("the call is over") from None
        finally:
            with self._lock:
                self._waiting = None

    def _opened(self, stream: socket.socket) -> None:
        with self._lock:
            self._socket = stream
            if self._closed:
                _shut_down(stream)


async def _bounded(work: Callable[[], Awaitable[T]], remaining_s: float) -> T:
    async with asyncio.timeout(remaining_s):
        return await work()


def _shut_down(stream: socket.socket) -> None:
    try:
        stream.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed, or was never connected


def _is_under(path: PurePosixPath, granted: str) -> bool:
    return path == PurePosixPath(granted) or PurePosixPath(granted) in path.parents


def _params(text: str) -> dict[str, Any]:
    try:
        return parse_arguments(text)
    except InvalidParams as error:
        raise HostDenied(f"{error.code}: {error.message}") from None
