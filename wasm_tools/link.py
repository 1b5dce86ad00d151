"""The linker of one call: guarded host functions and a WASI that gives nothing away."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

from wasmtime import Engine, Store, WasiConfig, WasmtimeError
from wasmtime import (
    _ffi as ffi,
)  # the binding's own way in keeps exceptions in one slot for the whole process
from wasmtime.component import Component, Instance, Linker, LinkerInstance

from wasm_tools.host import Host, HostDenied, OverLimit
from wasm_tools.host_functions import HostFunction, SleepDenied, clock_functions, host_functions
from wasm_tools.lifted import TooMuchHanded, lift
from wasm_tools.state import CallState
from wasm_tools.surface import HOST_INTERFACE, MONOTONIC_CLOCK, Surface

_LOG = logging.getLogger(__name__)
_CALLBACK = cast("Any", ffi.wasmtime_component_func_callback_t)
_ADD = cast("Any", ffi.wasmtime_component_linker_instance_add_func)  # pyright: ignore[reportUnknownMemberType]
_NO_FINALIZER = ctypes.cast(0, ctypes.CFUNCTYPE(None, ctypes.c_void_p))
_THE_GUESTS_OWN = (HostDenied, OverLimit, SleepDenied, TooMuchHanded)


class CallLinker:
    """Links what a component imports, and nothing else, for one call; close it after the call's store."""

    def __init__(
        self, engine: Engine, surface: Surface, state: CallState, host: Host, now_ms: Callable[[], int]
    ) -> None:
        self._linker = Linker(engine)
        self._callbacks: list[object] = []  # the library calls them for as long as an instance lives
        if surface.uses_wasi:
            self._linker.add_wasip2()
            self._linker.allow_shadowing = True
        if not surface.host_functions and not surface.clock_versions:
            return
        with self._linker.root() as root:
            if surface.host_functions:
                offered = host_functions(state, host, now_ms)
                self._add(
                    root, HOST_INTERFACE, {name: offered[name] for name in surface.host_functions}, state
                )
            for version in surface.clock_versions:
                self._add(root, f"{MONOTONIC_CLOCK}@{version}", clock_functions(state), state)

    def instantiate(self, store: Store, component: Component) -> Instance:
        """Make an instance.

        Raises:
            WasmtimeError: its start failed, or its needs are over the store's limits.
        """
        return self._linker.instantiate(store, component)

    def close(self) -> None:
        """Give everything back."""
        self._linker.close()
        self._callbacks.clear()

    def _add(
        self, root: LinkerInstance, interface: str, functions: Mapping[str, HostFunction], state: CallState
    ) -> None:
        with root.add_instance(interface) as instance:
            for name, function in functions.items():
                callback = _guarded(state, function)
                self._callbacks.append(callback)
                raw = name.encode()
                error = _ADD(
                    instance.ptr(), ctypes.create_string_buffer(raw), len(raw), callback, None, _NO_FINALIZER
                )
                assert not error, "each name is added once"


def sealed_wasi(state: CallState) -> WasiConfig:
    """No files, environment, arguments, input or network; output goes to the call's state."""
    config = WasiConfig()
    config.stdout_custom = state.stdout.write
    config.stderr_custom = state.stderr.write
    return config


def _guarded(state: CallState, function: HostFunction) -> object:
    """A function as the library calls it.

    Nothing that it raises crosses: an exception would be lost there, and the guest would go on with a result
    that nobody wrote. The call's owner reads it from the call's state.
    """

    def called(
        _data: object, _context: object, _type: object, given: Any, count: int, results: Any, _expected: int
    ) -> int:
        try:
            budget = function.budget()
            fill = function.run(*[lift(given[at], budget) for at in range(count)])
            if fill is not None:
                fill(results[0])
        except BaseException as failure:  # noqa: BLE001 - see above
            if not isinstance(failure, _THE_GUESTS_OWN):
                _LOG.exception("host function failed")
            failure.__traceback__ = failure.__context__ = failure.__cause__ = None
            state.host_failure = state.host_failure or failure
        else:
            return 0
        # wasmtime takes the error over and frees it.
        error = WasmtimeError("refused by the host")._consume()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no public way
        return ctypes.cast(error, ctypes.c_void_p).value or 0

    return _CALLBACK(called)
