"""Problems of ours as an agent's SDK reads errors. Pure."""

from __future__ import annotations

import json
from http import HTTPStatus

from worker.protocol.problems import MEDIA_TYPE, Problem
from worker.relay.rules import Header, Refused


def problem_of(refused: Refused) -> Problem:
    """The problem of a request that the relay itself refuses."""
    return Problem(
        title=HTTPStatus(refused.status).phrase,
        status=refused.status,
        code=refused.code,
        detail=refused.detail,
        retryable=refused.status == HTTPStatus.BAD_GATEWAY,
    )


def for_sdk(problem: Problem) -> tuple[list[Header], bytes]:
    """Headers and body: the problem, with the member `error` in which both SDKs look for the words.

    An SDK asks again after a 5xx, unless it is told not to.
    """
    error = {"message": problem.detail, "type": problem.code, "code": problem.code}
    body = json.dumps({**problem.model_dump(mode="json", exclude_none=True), "error": error}).encode()
    headers = [("content-type", MEDIA_TYPE), ("content-length", str(len(body)))]
    if not problem.retryable:
        headers.append(("x-should-retry", "false"))
    return headers, body
