"""The linker of one call: guarded host functions and a WASI that gives nothing away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from wasmtime import Engine, WasiConfig, WasmtimeError
from wasmtime.component import Linker, LinkerInstance, Record, Variant

from wasm_tools.host import Host, HostDenied, HttpRequest, HttpResponse
from wasm_tools.state import CallState
from wasm_tools.surface import HOST_INTERFACE, MONOTONIC_CLOCK, Surface

_LOG = logging.getLogger(__name__)
_U64 = 1 << 64


class BadHostValue(Exception):
    """A host function returned what its type can't hold: our fault, not the guest's."""


class SleepDenied(Exception):
    """The guest asked to sleep."""


def make_linker(
    engine: Engine, surface: Surface, state: CallState, host: Host, now_ms: Callable[[], int]
) -> Linker:
    """Link what this component imports, and nothing else.

    Every function is guarded: an exception that crosses into wasmtime would land in one slot for the
    whole process, where another call may pick it up, and one that is no `Exception` ends the process.
    """
    linker = Linker(engine)
    if surface.uses_wasi:
        linker.add_wasip2()
        linker.allow_shadowing = True
    functions = _host_functions(state, host, now_ms)
    with linker.root() as root:
        if surface.host_functions:
            with root.add_instance(HOST_INTERFACE) as instance:
                for name in surface.host_functions:
                    instance.add_func(name, _guarded(state, functions[name]))
        for version in surface.clock_versions:
            with root.add_instance(f"{MONOTONIC_CLOCK}@{version}") as instance:
                _add_clock(instance, state)
    return linker


def sealed_wasi(state: CallState) -> WasiConfig:
    """No files, environment, arguments, input or network; output goes to the call's state."""
    config = WasiConfig()
    config.stdout_custom = state.stdout.write
    config.stderr_custom = state.stderr.write
    return config


def make_record(**fields: Any) -> Record:
    """A record value; wasmtime-py keeps its fields as attributes."""
    record = Record()
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def _guarded(state: CallState, function: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(_store: object, *args: Any) -> Any:
        try:
            return function(*args)
        except BaseException as failure:  # noqa: BLE001 - see make_linker; the call's owner reads it
            if not isinstance(failure, HostDenied | SleepDenied):
                _LOG.exception("host function failed")
            failure.__traceback__ = failure.__context__ = failure.__cause__ = None
            state.host_failure = state.host_failure or failure
        raise WasmtimeError("refused by the host")

    return guarded


def _host_functions(state: CallState, host: Host, now_ms: Callable[[], int]) -> dict[str, Callable[..., Any]]:
    def now_millis() -> int:
        value = now_ms()
        if not 0 <= value < _U64:
            raise BadHostValue("now-millis: not an unsigned 64-bit number")
        return value

    def secret_exists(name: str) -> bool:
        return bool(host.secret_exists(name, state.remaining_s()))

    def workspace_read(path: str) -> str | None:
        content = host.workspace_read(path, state.remaining_s())
        return None if content is None else _text("workspace-read", content)

    def http_request(
        method: str, url: str, headers: list[tuple[str, str]], body: str | None, timeout_ms: int | None
    ) -> Record | str:
        request = HttpRequest(method, url, tuple(headers), body, timeout_ms)
        try:
            return _response_record(host.http_request(request, state.remaining_s()))
        except HostDenied as denied:
            return _text("http-request", str(denied))

    def tool_invoke(alias: str, params_json: str) -> Variant:
        try:
            result = host.tool_invoke(alias, params_json, state.remaining_s())
            return Variant("ok", _text("tool-invoke", result))
        except HostDenied as denied:
            return Variant("err", _text("tool-invoke", str(denied)))

    return {
        "log": state.log,
        "now-millis": now_millis,
        "secret-exists": secret_exists,
        "workspace-read": workspace_read,
        "http-request": http_request,
        "tool-invoke": tool_invoke,
    }


def _text(function: str, value: object) -> str:
    """The value, once it is known that wasmtime can lower it: a string without lone surrogates."""
    if not isinstance(value, str):
        raise BadHostValue(f"{function}: not a string")
    value.encode()
    return value


def _response_record(response: HttpResponse) -> Record:
    if not 0 <= response.status < 1 << 16:
        raise BadHostValue("http-request: not a status")
    headers = [
        (_text("http-request", name), _text("http-request", value)) for name, value in response.headers
    ]
    return make_record(status=response.status, headers=headers, body=_text("http-request", response.body))


def _add_clock(instance: LinkerInstance, state: CallState) -> None:
    """A monotonic clock that tells the time and can't be waited on: WASI's own wait ignores the deadline."""

    def subscribe_duration(nanoseconds: int) -> None:
        if nanoseconds / 1e9 >= state.remaining_s():
            state.timed_out = state.slept = True
        raise SleepDenied("it asked to sleep, which a tool can't")

    def subscribe_instant(moment: int) -> None:
        subscribe_duration(moment - time.monotonic_ns())

    instance.add_func("now", _guarded(state, time.monotonic_ns))
    instance.add_func("resolution", _guarded(state, lambda: 1_000))
    instance.add_func("subscribe-duration", _guarded(state, subscribe_duration))
    instance.add_func("subscribe-instant", _guarded(state, subscribe_instant))
