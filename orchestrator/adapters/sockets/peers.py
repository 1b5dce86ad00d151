"""Who is connected to a listening socket, and how much of everybody's room one of them may take."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Protocol

LOOK_S = 15.0
PATIENT_LOOKS = 4
"""A peer that is late at so many looks, one after another, is dropped: after a minute."""


class Peer(Protocol):
    """One connection."""

    def late(self) -> bool:
        """Whether it is waited for and does nothing, compared with the look before."""
        ...

    def drop(self) -> None:
        """End it at once; what it was not yet told is lost."""
        ...


class Peers:
    """The connections of one socket.

    Args:
        most: so many are taken at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._late: dict[Peer, int] = {}

    def __len__(self) -> int:
        return len(self._late)

    def join(self, peer: Peer) -> bool:
        """Take one more; False when there is no room."""
        if len(self._late) >= self._most:
            return False
        self._late[peer] = 0
        return True

    def leave(self, peer: Peer) -> None:
        """It is gone, or somebody else's now."""
        self._late.pop(peer, None)

    def look(self) -> None:
        """Drop those that were late too often."""
        for peer, looks in list(self._late.items()):
            self._late[peer] = looks + 1 if peer.late() else 0
            if self._late[peer] >= PATIENT_LOOKS:
                peer.drop()


def too_many() -> bytes:
    """What one hears for whom there is no room."""
    return refusal(
        HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", "too many connections at once; end some first"
    )


def refusal(status: HTTPStatus, code: str, detail: str) -> bytes:
    """A whole HTTP answer that ends its connection, in the shape that all errors have."""
    problem = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "code": code,
        "detail": detail,
        "retryable": status is HTTPStatus.SERVICE_UNAVAILABLE,
    }
    content = json.dumps(problem).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + content
