"""Every path of the worker API, below `/worker/{job_id}/`."""

from __future__ import annotations

PROTOCOL_VERSION = "1"

JOB = "job"
WORKSPACE = "workspace"
WORKSPACE_CHANGES = "workspace/changes"
CREDENTIALS = "credentials"
STATUS = "status"
EVENTS = "events"
PROMPT = "prompt"
LLM_COMPLETE = "llm/complete"
LLM_COMPLETE_WITH_TOOLS = "llm/complete_with_tools"
LLM_OPENAI = "llm/openai/v1"
LLM_ANTHROPIC = "llm/anthropic/v1"
TOOLS_CATALOG = "tools/catalog"
TOOLS_EXECUTE = "tools/execute"
ARTIFACT = "artifacts/{artifact_id}"
TOKEN_RENEW = "token/renew"  # noqa: S105 - a path
COMPLETE = "complete"

IDEMPOTENCY_KEY = "Idempotency-Key"
CONTENT_DIGEST = "Content-Digest"


def worker_path(job_id: str, name: str) -> str:
    """The full path of one worker route for a job."""
    return f"/worker/{job_id}/{name}"
