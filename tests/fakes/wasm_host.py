"""Hosts of guests, for tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from wasm_tools.host import HttpRequest, HttpResponse, RefusingHost


class AnsweringHost(RefusingHost):
    """Answers each request by a function of it, which may raise or return nonsense."""

    def __init__(self, answer: Callable[[HttpRequest], HttpResponse]) -> None:
        self._answer = answer

    def http_request(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
        return self._answer(request)


class EnteredHost(RefusingHost):
    """Answers, and tells that a guest has come this far."""

    def __init__(self) -> None:
        self._entered = threading.Semaphore(0)

    async def wait(self) -> None:
        """Wait for the next request."""
        assert await asyncio.to_thread(self._entered.acquire, timeout=10), "no guest came"

    def http_request(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
        self._entered.release()
        return HttpResponse(200, (), "late")


class BlockingHost(EnteredHost):
    """A server that never answers, until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()

    def http_request(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
        response = super().http_request(request, remaining_s)
        assert self.release.wait(60), "the test forgot to release its host"
        return response
