"""From the event loop to a guest's thread and back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from wasmtime.component import Component

from tool_registry.clock import Clock
from tool_registry.errors import ToolUnavailable
from wasm_tools.cache import CompiledCache
from wasm_tools.call import Guest
from wasm_tools.causes import Cause, Failure
from wasm_tools.compile import CompileBounds, compile_component
from wasm_tools.engine import THREAD_STACK_BYTES, WasmEngine
from wasm_tools.limits import Limits
from wasm_tools.state import CallState
from wasm_tools.surface import read_surface

T = TypeVar("T")
_GRACE_S = 0.5  # how much later than its limit a call may come back on its own
_COMPILERS = 2


class WasmRuntime:
    """Engine, compiled components and threads; one for a process.

    A caller never waits longer than its limit, even where a guest is stuck inside a host function:
    its thread then ends by the host function's own bound, and is counted as stuck until it does.

    Not a sandbox of its own: guests run in this process, in wasmtime's.
    """

    def __init__(
        self,
        *,
        cache_dir: Path,
        cache_key: bytes,
        clock: Clock,
        threads: int = 32,
        compile_bounds: CompileBounds = CompileBounds(),  # noqa: B008 - frozen
    ) -> None:
        """Start nothing but the engine's ticker.

        Args:
            cache_dir: for machine code; made when absent.
            cache_key: 32 secret bytes that seal it; see `load_or_create_key`.
            clock: what guests read, and what deadlines are given on.
            threads: calls at one time; more wait, within their limit.
            compile_bounds: for each component.
        """
        self.clock = clock
        self._engine = WasmEngine()
        self._cache = CompiledCache(cache_dir, cache_key)
        self._bounds = compile_bounds
        self._compiling = asyncio.Semaphore(_COMPILERS)
        self._max_threads = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="wasm-guest")
        self._lock = threading.Lock()
        self._active: dict[Future[Any], CallState] = {}
        self._stuck = 0

    @property
    def stuck(self) -> int:
        """Threads whose caller has left and that have not come back yet."""
        return self._stuck

    async def prepare(self, wasm: bytes) -> Guest:
        """Compile a component, or find it in the cache, and check what it imports and exports.

        Raises:
            CompileRefused: invalid, or too costly to compile.
            UnfitComponent: not of the world that is expected.
        """
        path = await asyncio.to_thread(self._cache.find, wasm)
        if path is None:
            path = await self._compile(wasm)
        return await asyncio.to_thread(self._load, path)

    async def run(self, work: Callable[[CallState], T], limits: Limits) -> T | Failure:
        """Run one call of a guest on a thread, within its time limit.

        Cancelling ends the guest; its thread is waited for shortly.

        Raises:
            ToolUnavailable: no thread became free; the guest did not run.
        """
        if self._stuck >= self._max_threads:
            raise ToolUnavailable("all threads for WASM tools are stuck in host calls; try again later")
        state = CallState(limits, time.monotonic() + limits.timeout_s)
        future = self._start(work, state)
        waiter = asyncio.wrap_future(future)
        try:
            await asyncio.wait({waiter}, timeout=limits.timeout_s + _GRACE_S)
        except asyncio.CancelledError:
            state.stop()
            if not future.cancel():
                await asyncio.wait({waiter}, timeout=_GRACE_S)
            self._leave(future, waiter)
            raise
        if waiter.done():
            return waiter.result()
        state.stop()
        if future.cancel():
            raise ToolUnavailable("all threads for WASM tools were busy; try again later")
        self._leave(future, waiter)
        limit = f"{limits.timeout_s:.3g} s"
        return Failure(Cause.TIMEOUT, f"The tool was still in a host call at its time limit of {limit}.")

    async def close(self) -> None:
        """End every call and the threads; those stuck in a host call are left to its own bound."""
        with self._lock:
            active = dict(self._active)
        for state in active.values():
            state.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
        waiters = [asyncio.wrap_future(future) for future in active]
        if waiters:
            await asyncio.wait(waiters, timeout=_GRACE_S)
        self._cache.close()
        if all(future.done() for future in active):  # whoever is left still needs the ticks to end
            self._engine.close()

    def _start(self, work: Callable[[CallState], T], state: CallState) -> Future[T]:
        with self._lock:
            # The size holds for threads started from now on, in the whole process; so it is put back.
            before = threading.stack_size(THREAD_STACK_BYTES)
            try:
                future = self._threads.submit(work, state)
            finally:
                threading.stack_size(before)
            self._active[future] = state
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future: Future[Any]) -> None:
        with self._lock:
            self._active.pop(future, None)

    def _leave(self, future: Future[T], waiter: asyncio.Future[T]) -> None:
        """Turn away from a call that has not come back; it is counted until it does."""
        if future.done():
            return
        waiter.cancel()
        with self._lock:
            self._stuck += 1
        future.add_done_callback(self._came_back)

    def _came_back(self, _future: Future[T]) -> None:
        with self._lock:
            self._stuck -= 1

    async def _compile(self, wasm: bytes) -> Path:
        with self._cache.scratch() as scratch:
            async with self._compiling:
                await compile_component(wasm, scratch, self._bounds)
            return await asyncio.to_thread(self._cache.adopt, wasm, scratch)

    def _load(self, path: Path) -> Guest:
        component = Component.deserialize_file(self._engine.engine, str(path))
        surface = read_surface(self._engine.engine, component)
        return Guest(self._engine, component, surface, self._now_ms)

    def _now_ms(self) -> int:
        return int(self.clock.now().timestamp() * 1_000)
