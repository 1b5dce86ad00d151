"""The wasmtime engine and the clock that interrupts its guests."""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version

from wasmtime import Config, Engine
from wasmtime import _ffi as ffi  # the one switch below has no public name

TICK_S = 0.01
MAX_WASM_STACK_BYTES = 1 << 20
THREAD_STACK_BYTES = 2 << 20


def make_config() -> Config:
    """The one configuration that components are compiled and run with.

    Shared memory and threads are off because an atomic wait holds its thread past any deadline, async
    components because nothing here drives them. A guest's stack is half a thread's at most: native
    recursion on a smaller one ends the process.
    """
    config = Config()
    config.epoch_interruption = True
    config.shared_memory = False
    config.wasm_threads = False
    config.max_wasm_stack = MAX_WASM_STACK_BYTES
    ffi.wasmtime_config_wasm_component_model_async_set(config.ptr(), False)  # noqa: FBT003 - C
    return config


def wasmtime_version() -> str:
    """The installed version; machine code of another one is never loaded."""
    return version("wasmtime")


def config_fingerprint() -> str:
    """Names what machine code depends on beside component and wasmtime version: 16 hex digits.

    Whoever changes `make_config` changes this text with it.
    """
    facts = (
        platform.machine(),
        platform.system(),
        f"epoch,no-shared-memory,no-threads,no-async,stack={MAX_WASM_STACK_BYTES}",
    )
    return hashlib.sha256("|".join(facts).encode()).hexdigest()[:16]


class WasmEngine:
    """An engine whose epoch advances every 10 ms while a guest runs, and rests while none does."""

    def __init__(self) -> None:
        self.engine = Engine(make_config())
        self._changed = threading.Condition()
        self._running = 0
        self._closed = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="wasm-ticker", daemon=True)
        self._ticker.start()

    @contextmanager
    def ticking(self) -> Generator[None]:
        """Keeps the epoch going; what runs inside can be interrupted."""
        with self._changed:
            self._running += 1
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1

    def close(self) -> None:
        """End the ticker. No guest may be running any more."""
        with self._changed:
            self._closed.set()
            self._changed.notify()
        self._ticker.join()

    def _tick(self) -> None:
        while not self._closed.wait(TICK_S):
            with self._changed:
                self._changed.wait_for(lambda: self._running > 0 or self._closed.is_set())
            self.engine.increment_epoch()
