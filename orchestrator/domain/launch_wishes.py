"""What an agent's definition says about the jobs that run as it."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.domain.jobs import JobMode, JobSpec
from orchestrator.domain.network.agents import LaunchSettings


def launched_as(spec: JobSpec, launch: LaunchSettings, default_model: str) -> JobSpec:
    """The job as its agent wishes it, where the job itself says nothing.

    The agent's mission stands before the job's own system prompt.
    """
    prompts = [text for text in (launch.mission.strip(), spec.system_prompt) if text]
    return replace(
        spec,
        model=spec.model or launch.model or default_model,
        image=spec.image or launch.image,
        system_prompt="\n\n".join(prompts) or None,
        allow_hosts=spec.allow_hosts or (launch.allow_hosts if spec.mode is JobMode.HOSTED else ()),
    )
