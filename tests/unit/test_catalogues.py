"""A job's catalogue is made once a change of the registry, whoever asks and however often (HW-6, PD-16)."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.services.catalogues import Catalogues
from tests.fakes.registry_tools import RegistryTool
from tests.support.jobs import make_job
from tool_registry.registry import Entry, Offer, ToolRegistry
from tool_registry.tool import Approval


class CountingRegistry(ToolRegistry):
    """Counts how often somebody goes through all tools, as building a catalogue does."""

    walks = 0

    def entries(self) -> tuple[Entry, ...]:
        self.walks += 1
        return super().entries()


def filled() -> CountingRegistry:
    registry = CountingRegistry()
    registry.replace("server", [Offer(RegistryTool(f"tool_{number}")) for number in range(1_000)])
    registry.walks = 0
    return registry


def test_asking_again_and_the_version_of_every_call_build_nothing() -> None:
    """What a 304 and an execute answer need is there already, for any number of jobs."""
    registry = filled()
    catalogues = Catalogues(registry)
    first = catalogues.for_job(make_job("job-1"))
    for number in range(100):
        job = make_job(f"job-{number}")
        assert catalogues.for_job(job) is first
        assert catalogues.version_for(job) == first.catalogue.version
    assert registry.walks == 1


def test_a_change_and_other_grants_build_once_each() -> None:
    registry = filled()
    catalogues = Catalogues(registry)
    job = make_job()
    granted = make_job(spec=replace(job.spec, grants=frozenset({"gated"})))
    first = catalogues.for_job(job)
    assert catalogues.for_job(granted) is not first
    registry.replace("other", [Offer(RegistryTool("gated", owner="other", approval=Approval.ALWAYS))])
    assert catalogues.version_for(job) == first.catalogue.version
    assert catalogues.version_for(granted) != first.catalogue.version
    for _ in range(10):
        catalogues.version_for(granted)
        catalogues.version_for(job)
    assert registry.walks == 4
