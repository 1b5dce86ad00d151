"""A job without a container: the same session in the orchestrator's process, over the same routes."""

from __future__ import annotations

from pathlib import Path

import httpx

from tool_registry.clock import Clock
from worker.client import WorkerClient
from worker.ending import LoopEnd
from worker.explainer import SubprocessExplainer
from worker.hand_over import report
from worker.session import Session, SessionSettings
from worker.token import Token

_NO_WORKSPACE = "(none: this job has no container)"


async def run_in_process(
    transport: httpx.AsyncBaseTransport,
    *,
    job_id: str,
    attempt: int,
    token: str,
    clock: Clock,
    output_dir: Path,
) -> LoopEnd:
    """Run a job with the orchestrator's tools only, and report its outcome.

    Args:
        transport: leads to the orchestrator's application, without a network.
        job_id: the job to run.
        attempt: part of every idempotency key.
        token: the job's own, as a container would get.
        clock: the time.
        output_dir: where outputs too long for the model are kept.

    Raises:
        PortsideError: the orchestrator could not be told the outcome.
    """
    async with httpx.AsyncClient(transport=transport, base_url="http://portside") as http:
        client = WorkerClient(http, job_id, Token(token), clock=clock)
        job = await client.job()
        session = Session(
            job,
            client,
            SessionSettings(_NO_WORKSPACE, attempt, output_dir),
            clock=clock,
            explainer=SubprocessExplainer(),
        )
        end = await session.run([])
        await report(client, session.events, end, files=None)
    return end
