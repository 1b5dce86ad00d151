"""What comes out of a container: bounded logs and tar streams, read so that they can be left at any time.

The SDK's own readers switch the socket's time-out off and can't be closed early; these keep it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import requests
from docker.errors import create_api_error_from_http_exception

from container.adapters.docker.api import DockerApi

CHUNK_BYTES = 256 * 1024
CUT_NOTE = "[earlier output left out]\n"
_HEADER = struct.Struct(">BxxxL")


def read_tail(api: DockerApi, container: str, tail_bytes: int) -> str:
    """The last `tail_bytes` of both streams, with a first line that says so when more was there.

    The whole log is read, which is bounded where it is kept: of an engine's own tail Podman leaves out parts
    of long lines, and ends others in the wrong place. Memory stays near `tail_bytes`.
    """
    params = {"stdout": 1, "stderr": 1, "follow": 0}
    with _get(api, f"/containers/{container}/logs", params) as response:
        kept, cut = _last(frames(response.iter_content(CHUNK_BYTES)), tail_bytes)
    if not cut:
        return kept.decode("utf-8", "replace")
    start = 0
    while start < min(3, len(kept)) and kept[start] & 0xC0 == 0x80:  # not in the middle of a character
        start += 1
    return CUT_NOTE + kept[start:].decode("utf-8", "replace")


def open_archive(api: DockerApi, container: str, path: str) -> requests.Response:
    """The tar of `path` inside, not read yet; the caller closes it."""
    return _get(api, f"/containers/{container}/archive", {"path": path})


def frames(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Payloads of the engine's multiplexed stream, in pieces no longer than the chunks they came in."""
    buffer = bytearray()
    left = 0
    for chunk in chunks:
        buffer += chunk
        while buffer:
            if left == 0:
                if len(buffer) < _HEADER.size:
                    break
                _stream, left = _HEADER.unpack(buffer[: _HEADER.size])
                del buffer[: _HEADER.size]
                continue
            piece = bytes(buffer[:left])
            del buffer[:left]
            left -= len(piece)
            yield piece


def _last(pieces: Iterable[bytes], limit: int) -> tuple[bytes, bool]:
    kept = bytearray()
    cut = False
    for piece in pieces:
        kept += piece
        if len(kept) > limit:
            del kept[: len(kept) - limit]
            cut = True
    return bytes(kept), cut


def _get(api: DockerApi, path: str, params: dict[str, Any]) -> requests.Response:
    response = api.get(
        f"{api.base_url}/v{api.api_version}{path}", params=params, stream=True, timeout=api.timeout
    )
    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        with response:
            create_api_error_from_http_exception(error)
    return response
