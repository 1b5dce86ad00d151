"""The functions of the host interface: a call's host behind the types of `world.wit`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from wasm_tools.host import Host, HostDenied, HttpRequest, HttpResponse
from wasm_tools.lifted import Budget
from wasm_tools.lowered import Fill, boolean, option, record, result, sequence, several, text, u16, u64
from wasm_tools.state import CallState

_U64 = 1 << 64
_MOST_VALUES = 5_000
_MOST_BYTES = 16 << 20


class BadHostValue(Exception):
    """A host function returned what its type can't hold: our fault, not the guest's."""


class SleepDenied(Exception):
    """The guest asked to sleep."""


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function that a guest may import.

    Attributes:
        run: takes the arguments, answers what writes the result; None where there is none.
        budget: for the arguments of one call.
    """

    run: Callable[..., Fill | None]
    budget: Callable[[], Budget]


def _ordinary() -> Budget:
    return Budget(values=_MOST_VALUES, text_bytes=_MOST_BYTES)


def host_functions(state: CallState, host: Host, now_ms: Callable[[], int]) -> dict[str, HostFunction]:
    """The whole interface, by name."""

    def line() -> Budget:
        return Budget(values=_MOST_VALUES, text_bytes=state.limits.log_line_bytes, clip=True)

    def secret_exists(name: str) -> Fill:
        return boolean(bool(host.secret_exists(name, state.remaining_s())))

    def workspace_read(path: str) -> Fill:
        content = host.workspace_read(path, state.remaining_s())
        return option(None if content is None else _text("workspace-read", content))

    def http_request(
        method: str, url: str, headers: list[tuple[str, str]], body: str | None, timeout_ms: int | None
    ) -> Fill:
        return _request(host, state, HttpRequest(method, url, tuple(headers), body, timeout_ms))

    def tool_invoke(alias: str, params_json: str) -> Fill:
        return _invoke(host, state, alias, params_json)

    runs: dict[str, Callable[..., Fill]] = {
        "now-millis": lambda: _now(now_ms),
        "secret-exists": secret_exists,
        "workspace-read": workspace_read,
        "http-request": http_request,
        "tool-invoke": tool_invoke,
    }
    plain = {name: HostFunction(run, _ordinary) for name, run in runs.items()}
    return {"log": HostFunction(state.log, line), **plain}


def clock_functions(state: CallState) -> dict[str, HostFunction]:
    """A monotonic clock that tells the time and can't be waited on: WASI's own wait ignores the deadline."""

    def subscribe_duration(nanoseconds: int) -> None:
        if nanoseconds / 1e9 >= state.remaining_s():
            state.timed_out = state.slept = True
        raise SleepDenied("it asked to sleep, which a tool can't")

    def subscribe_instant(moment: int) -> None:
        subscribe_duration(moment - time.monotonic_ns())

    runs: dict[str, Callable[..., Fill | None]] = {
        "now": lambda: u64(time.monotonic_ns()),
        "resolution": lambda: u64(1_000),
        "subscribe-duration": subscribe_duration,
        "subscribe-instant": subscribe_instant,
    }
    return {name: HostFunction(run, _ordinary) for name, run in runs.items()}


def _now(now_ms: Callable[[], int]) -> Fill:
    value = now_ms()
    if not 0 <= value < _U64:
        raise BadHostValue("now-millis: not an unsigned 64-bit number")
    return u64(value)


def _request(host: Host, state: CallState, request: HttpRequest) -> Fill:
    try:
        return result(_response(host.http_request(request, state.remaining_s())), ok=True)
    except HostDenied as denied:
        return result(_text("http-request", str(denied)), ok=False)


def _invoke(host: Host, state: CallState, alias: str, params_json: str) -> Fill:
    try:
        answer = host.tool_invoke(alias, params_json, state.remaining_s())
        return result(_text("tool-invoke", answer), ok=True)
    except HostDenied as denied:
        return result(_text("tool-invoke", str(denied)), ok=False)


def _text(function: str, value: object) -> Fill:
    """Refuses what is no string, and a lone surrogate, which has no UTF-8."""
    if not isinstance(value, str):
        raise BadHostValue(f"{function}: not a string")
    return text(value.encode())


def _response(response: HttpResponse) -> Fill:
    if not 0 <= response.status < 1 << 16:
        raise BadHostValue("http-request: not a status")
    headers = [several(_text("http-request", n), _text("http-request", v)) for n, v in response.headers]
    return record(
        (b"status", u16(response.status)),
        (b"headers", sequence(headers)),
        (b"body", _text("http-request", response.body)),
    )
