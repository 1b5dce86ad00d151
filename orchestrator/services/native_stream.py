"""A provider's event stream on its way through: counted, and cleaned where it reports an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from orchestrator.domain.native.usage import Tokens

_END = re.compile(rb"\r?\n\r?\n|\r\r")
_LONGEST_END = 4
_MAX_EVENT_BYTES = 16 * 1024 * 1024


class EventMeter:
    """Passes whole events on as they are.

    Args:
        clean: takes secrets out of the text of an error.
        hide_usage: leave out the event that holds the usage alone; its client did not ask for it.

    Attributes:
        tokens: what the stream says that it came to, so far.
        events: how many have passed.
    """

    def __init__(self, clean: Callable[[str], str], *, hide_usage: bool) -> None:
        self._clean = clean
        self._hide_usage = hide_usage
        self._held = bytearray()
        self.tokens = Tokens()
        self.events = 0

    def feed(self, chunk: bytes) -> bytes:
        """Take a piece; answers the events that are whole now."""
        # An end may lie across two pieces; what was searched before is not searched again.
        start = max(len(self._held) - _LONGEST_END, 0)
        self._held += chunk
        passed = bytearray()
        while found := _END.search(self._held, start):
            raw = bytes(self._held[: found.end()])
            del self._held[: found.end()]
            passed += self._passed(raw)
            start = 0
        if len(self._held) > _MAX_EVENT_BYTES:  # no event of any API: it goes on uncounted
            passed += self.rest()
        return bytes(passed)

    def rest(self) -> bytes:
        """What is left at the end of the stream."""
        raw = bytes(self._held)
        self._held.clear()
        return self._passed(raw) if raw.strip() else raw

    def _passed(self, raw: bytes) -> bytes:
        event = _json_of(raw)
        if event is None:
            return raw
        self.events += 1
        self.tokens = self.tokens.with_event(event)
        if _is_error(event):
            return self._clean(raw.decode("utf-8", "replace")).encode()
        hidden = self._hide_usage and event.get("choices") == [] and event.get("usage")
        return b"" if hidden else raw


def failed_event(message: str) -> bytes:
    """The event that both SDKs raise as an error: the stream broke off, and is no whole answer."""
    error = {"type": "api_error", "code": "model_error", "message": message}
    return f"event: error\ndata: {json.dumps({'type': 'error', 'error': error})}\n\n".encode()


def _is_error(event: Mapping[str, Any]) -> bool:
    response = event.get("response")
    held: object = cast("Mapping[str, Any]", response).get("error") if isinstance(response, dict) else None
    return bool(event.get("error") or held or event.get("type") == "error")


def _json_of(raw: bytes) -> Mapping[str, Any] | None:
    """The JSON object of an event's data lines."""
    data = b"\n".join(_data_lines(raw))
    try:
        value: Any = json.loads(data)
    except ValueError:
        return None  # a comment, a ping, [DONE]
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None


def _data_lines(raw: bytes) -> Iterator[bytes]:
    for line in raw.splitlines():
        if line.startswith(b"data:"):
            yield line[5:].strip()
