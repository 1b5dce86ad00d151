"""One call of a guest, in one fresh instance, on one thread."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wasmtime import Store, WasmtimeError
from wasmtime import _ffi as ffi  # the deadline callback has no public name
from wasmtime.component import Component, Func, Instance

from wasm_tools.causes import Cause, Failure, classify
from wasm_tools.direct import TooLong, call_execute, call_text
from wasm_tools.engine import TICK_S, WasmEngine
from wasm_tools.host import Host, HostDenied, OverLimit, RefusingHost
from wasm_tools.host_functions import SleepDenied
from wasm_tools.lifted import TooMuchHanded
from wasm_tools.limits import Limits
from wasm_tools.link import CallLinker, sealed_wasi
from wasm_tools.state import CallState
from wasm_tools.surface import TOOL_INTERFACE, Surface
from wasm_tools.typed import TypedExport, call_export
from wasm_tools.wit_types import NoJson

_MOST_TICKS_BETWEEN_CHECKS = 10
_DEADLINE_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.POINTER(ffi.wasmtime_context_t),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ffi.wasmtime_update_deadline_kind_t),
)
_NO_FINALIZER = ctypes.cast(0, ctypes.CFUNCTYPE(None, ctypes.c_void_p))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a guest said: an output, or an error in its own words."""

    text: str
    is_error: bool


class Guest:
    """A component whose imports and exports are known to fit, and its functions.

    Each call makes a linker, a store and an instance of its own and drops them again, so that no call
    sees another. Functions may run on several threads at once; `state.stop` ends a call from any other.
    """

    def __init__(
        self,
        engine: WasmEngine,
        component: Component,
        surface: Surface,
        now_ms: Callable[[], int],
    ) -> None:
        self._engine = engine
        self._component = component
        self._surface = surface
        self._now_ms = now_ms

    def execute(
        self, state: CallState, host: Host, params_json: str, context_json: str | None
    ) -> Answer | Failure:
        """Call `execute`. Never raises what a guest or a host function can provoke."""
        most = state.limits.result_bytes

        def work(store: Store, instance: Instance) -> tuple[str | None, str | None]:
            function = _export(store, instance, "execute")
            return call_execute(store, function, params_json, context_json, max_bytes=most)

        result = self._run(state, host, work)
        return result if isinstance(result, Failure) else _answer(*result)

    @property
    def typed(self) -> tuple[TypedExport, ...]:
        """Its functions, where it is of another world than ours."""
        return self._surface.typed

    def call(
        self, state: CallState, host: Host, export: TypedExport, params: dict[str, Any]
    ) -> Answer | Failure:
        """Call a function of another world. Never raises what a guest or a host function can provoke."""
        try:
            most = state.limits.result_bytes
            result = self._run(
                state, host, lambda store, one: call_export(store, one, export, params, max_bytes=most)
            )
        except NoJson as error:
            return Answer(f"the arguments fit the schema, but {error}", is_error=True)
        if isinstance(result, Failure):
            return result
        text, is_error = result
        size = len(text.encode())
        if size > state.limits.result_bytes:
            return _over(size, state.limits)
        return Answer(text, is_error=is_error)

    def text(self, state: CallState, function: str) -> str | Failure:
        """Call `schema` or `description`, without any capability."""
        most = state.limits.result_bytes

        def work(store: Store, instance: Instance) -> str:
            return call_text(store, _export(store, instance, function), max_bytes=most)

        return self._run(state, RefusingHost(), work)

    def link(self, state: CallState) -> Failure | None:
        """Make an instance and call nothing; None is success."""
        return self._run(state, RefusingHost(), lambda _store, _one: None)

    def _run(self, state: CallState, host: Host, work: Callable[[Store, Instance], Any]) -> Any:
        if state.has_to_end():
            return _ended(state)
        linker = CallLinker(self._engine.engine, self._surface, state, host, self._now_ms)
        try:
            with self._engine.ticking(), Store(self._engine.engine) as store:
                check = _arm(store, state, wasi=self._surface.uses_wasi)
                try:
                    return work(store, linker.instantiate(store, self._component))
                except TooLong as error:
                    return _over(error.size, state.limits)
                except WasmtimeError as error:
                    return _failure(state, error)
                finally:
                    del check  # it had to outlive the run
        finally:
            linker.close()


def _arm(store: Store, state: CallState, *, wasi: bool) -> object:
    """Give a store its limits, its deadline, and WASI where it is imported; returns what outlives the run.

    The epoch only wakes the check; the clock decides, so late ticks don't lengthen a limit, and a call
    can be stopped from outside.
    """
    limits = state.limits
    store.set_limits(
        memory_size=limits.memory_bytes,
        table_elements=limits.table_elements,
        instances=limits.instances,
        tables=limits.tables,
        memories=limits.memories,
    )
    if wasi:
        store.set_wasi(sealed_wasi(state))

    def check(_context: object, _data: object, delta: Any, kind: Any) -> int:
        if state.has_to_end():
            # wasmtime takes the error over and frees it.
            error = WasmtimeError("wasm trap: interrupt")._consume()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no public way
            return ctypes.cast(error, ctypes.c_void_p).value or 0
        delta[0] = _ticks_to_next_check(state)
        kind[0] = 0  # go on
        return 0

    callback = _DEADLINE_CALLBACK(check)
    ffi.wasmtime_store_epoch_deadline_callback(store.ptr(), callback, None, _NO_FINALIZER)
    store.set_epoch_deadline(_ticks_to_next_check(state))
    return callback


def _ticks_to_next_check(state: CallState) -> int:
    """Often enough to notice a cancellation, seldom enough that many busy guests leave the GIL alone."""
    return min(int(state.remaining_s() / TICK_S) + 1, _MOST_TICKS_BETWEEN_CHECKS)


def _export(store: Store, instance: Instance, function: str) -> Func:
    interface = instance.get_export_index(store, TOOL_INTERFACE)
    index = instance.get_export_index(store, function, interface)
    found = None if index is None else instance.get_func(store, index)
    assert found is not None, "the surface check found it"
    return found


def _failure(state: CallState, error: WasmtimeError) -> Failure:
    if state.has_to_end():
        return _ended(state)
    if isinstance(state.host_failure, OverLimit):
        return Failure(Cause.LIMIT, f"The tool {state.host_failure}.")
    if isinstance(state.host_failure, TooMuchHanded):
        return Failure(Cause.LIMIT, f"The tool handed its host {state.host_failure} in one call.")
    if state.host_failure is not None:
        ours = not isinstance(state.host_failure, HostDenied | SleepDenied)
        words = "a host function failed" if ours else str(state.host_failure)
        return Failure(Cause.HOST_REFUSED, f"The host ended the tool's call: {words}.")
    return classify(error, state.stderr.last_line())


def _ended(state: CallState) -> Failure:
    if state.timed_out:
        how = "asked to sleep beyond" if state.slept else "was stopped at"
        limit = f"{state.limits.timeout_s:.3g} s"
        return Failure(Cause.TIMEOUT, f"The tool {how} its time limit of {limit}.")
    return Failure(Cause.CANCELLED, "The call was cancelled and the tool stopped.")


def _answer(output: str | None, error: str | None) -> Answer | Failure:
    if output is not None and error is not None:
        return Failure(Cause.BAD_RESULT, "The tool broke its contract: it set both output and error.")
    if output is not None:
        return Answer(output, is_error=False)
    if error is not None:
        return Answer(error, is_error=True)
    return Failure(Cause.BAD_RESULT, "The tool broke its contract: it set neither output nor error.")


def _over(size: int, limits: Limits) -> Failure:
    return Failure(
        Cause.LIMIT, f"The tool's answer is {size:,} bytes, over its limit of {limits.result_bytes:,}."
    )
