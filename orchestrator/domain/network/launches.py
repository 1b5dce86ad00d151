"""Starting an agent when work waits for it: one job at a time, with pauses after failures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.domain.network.identities import AgentName

_FIRST_PAUSE = timedelta(seconds=10)
_LONGEST_PAUSE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class AgentLaunch:
    """The last time that an agent was started for its work.

    Attributes:
        job_id: the job; decided before the job is made, so that a repeat makes the same one.
        made: the job is there.
        ended: its end was looked at; the next launch is another job.
        failures: launches in a row that got nothing done.
        retry_at: not before then; None is at once.
        reason: why the last one failed.
    """

    agent: AgentName
    job_id: str
    at: datetime
    made: bool = False
    ended: bool = False
    failures: int = 0
    retry_at: datetime | None = None
    reason: str = ""

    def failed(self, reason: str, now: datetime) -> AgentLaunch:
        """It got nothing done: pause, longer each time."""
        pause = min(_FIRST_PAUSE * 3**self.failures, _LONGEST_PAUSE)
        return replace(
            self, ended=True, failures=self.failures + 1, retry_at=now + pause, reason=reason[:500]
        )

    def succeeded(self) -> AgentLaunch:
        """Its job did something: no pause."""
        return replace(self, ended=True, failures=0, retry_at=None, reason="")

    def again(self, job_id: str, now: datetime) -> AgentLaunch:
        """The next job."""
        return replace(self, job_id=job_id, at=now, made=False, ended=False, retry_at=None)

    def pausing(self, now: datetime) -> bool:
        """Whether it is too early for the next one."""
        return self.retry_at is not None and now < self.retry_at

    def waits_because(self, now: datetime) -> str:
        """What a task says that waits for it."""
        if self.ended and self.pausing(now) and self.retry_at is not None:
            tries = "once" if self.failures == 1 else f"{self.failures} times"
            return (
                f"{self.agent!r} was started {tries} in vain ({self.reason}); "
                f"it is started again at {self.retry_at:%H:%M:%S} UTC"
            )
        return f"{self.agent!r} is being started for it: job {self.job_id}"
