"""Squid's log, line by line. Pure."""

from __future__ import annotations

from orchestrator.adapters.egress.configuration import CLOSED, UNRESOLVED
from orchestrator.ports.egress import Carried, Denial

_FIELDS = 8
_UNNAMED = "-"
_CAUSES: dict[str, Denial] = {
    CLOSED: "private_address",
    UNRESOLVED: "no_such_name",
    "ERR_ACCESS_DENIED": "not_allowed",
}


def cause_of(error: str) -> Denial:
    """Why a connection was not made, by the name of the page that squid shows for it."""
    return _CAUSES.get(error, "not_reached")


def carried(line: str) -> Carried:
    """The connection that a line tells of.

    Raises:
        ValueError: it is not in the format that the configuration sets.
    """
    fields = line.split(" ")
    if len(fields) != _FIELDS:
        raise ValueError(f"{len(fields)} fields")
    job_id, target, outcome, address, sent, received, duration, error = fields
    host, _, port = target.rpartition(":")
    made = outcome.endswith("/200")
    return Carried(
        job_id=job_id,
        host=host,
        port=int(port),
        cause=None if made else cause_of(error),
        address="" if address == _UNNAMED else address,
        sent_bytes=int(sent) if made else 0,
        received_bytes=int(received) if made else 0,
        duration_ms=int(duration),
    )
