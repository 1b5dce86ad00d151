"""One event stream for all sandboxes: a thread reads, any number of listeners in event loops are told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from docker.errors import DockerException
from requests.exceptions import RequestException

from container.adapters.docker.api import DockerApi, EventStream
from container.adapters.docker.connection import connect
from container.adapters.docker.status import event_of
from container.engine.errors import EngineUnavailable
from container.engine.sandbox import EventKind, SandboxEvent

_QUEUE = 1024
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_RESYNC = SandboxEvent(kind=EventKind.RESYNC)


class Listener:
    """One consumer's queue. When it falls behind, it loses the events and gets one `RESYNC`."""

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[SandboxEvent] = asyncio.Queue(_QUEUE)

    def tell(self, event: SandboxEvent) -> None:
        """Called by the reading thread."""
        try:
            self._loop.call_soon_threadsafe(self._put, event)
        except RuntimeError:  # its loop has closed: nobody is left to be told
            self._feed.leave(self)

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> SandboxEvent:
        return await self._queue.get()

    async def aclose(self) -> None:
        """Stop listening."""
        self._feed.leave(self)

    def _put(self, event: SandboxEvent) -> None:
        if self._queue.full():
            while not self._queue.empty():
                self._queue.get_nowait()
            event = _RESYNC
        self._queue.put_nowait(event)


class EventFeed:
    """Reads the engine's events from the first listener to `close`, and reconnects by itself.

    Every listener gets one `RESYNC` at the moment from which it is told of everything. The end of the stream
    means "unknown", not "nothing happened": once connected again every listener gets another.
    """

    def __init__(self, endpoint: str, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._stream: EventStream | None = None
        self._live = False
        self._thread: threading.Thread | None = None

    def listen(self) -> Listener:
        """Listen; the first listener starts the thread."""
        listener = Listener(self)
        with self._lock:
            self._listeners = (*self._listeners, listener)
            if self._live:
                listener.tell(_RESYNC)
            if self._thread is None:
                self._thread = threading.Thread(target=self._read, name="engine-events", daemon=True)
                self._thread.start()
        return listener

    def leave(self, listener: Listener) -> None:
        """Tell this listener no more."""
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

    def close(self) -> None:
        """End the thread; blocks for as long as one connection attempt at most."""
        self._closing.set()
        with self._lock:
            stream, thread = self._stream, self._thread
        if stream is not None:
            _shut(stream)
        if thread is not None:
            thread.join(self._timeout_s + 1)

    def _read(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._closing.is_set():
            try:
                api = connect(self._endpoint, self._timeout_s)
                try:
                    for message in self._messages(api):
                        pause_s = _FIRST_PAUSE_S
                        event = event_of(message)
                        if event is not None:
                            self._tell(event)
                finally:
                    api.close()
            except (EngineUnavailable, RequestException, DockerException, OSError, ValueError):
                pass  # told to whoever calls the engine; here only the pause grows
            self._closing.wait(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _messages(self, api: DockerApi) -> Iterator[dict[str, Any]]:
        # Podman knows no filter by label: `event_of` tells sandboxes from other containers
        stream = api.events(decode=True, filters={"type": ["container"]})
        with self._lock:
            self._stream = stream
        try:
            if self._closing.is_set():
                return
            with self._lock:
                self._live = True
                listeners = self._listeners
            for listener in listeners:
                listener.tell(_RESYNC)
            yield from stream
        finally:
            with self._lock:
                self._stream, self._live = None, False

    def _tell(self, event: SandboxEvent) -> None:
        with self._lock:
            listeners = self._listeners
        for listener in listeners:
            listener.tell(event)


def _shut(stream: EventStream) -> None:
    with suppress(OSError, AttributeError):  # it ended by itself in this moment
        stream.close()
