"""Catalogues of the registry, one a kind of caller, kept until the registry changes."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.domain.jobs import Job
from tool_registry.catalogue import Catalogue, build_catalogue
from tool_registry.registry import ToolRegistry

_MAX_KINDS = 256


@dataclass(frozen=True, slots=True)
class Rendered:
    """A catalogue and its wire form."""

    catalogue: Catalogue
    body: bytes


class Catalogues:
    """What each job sees; made once a registry revision and set of grants."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._revision = -1
        self._rendered: dict[frozenset[str], Rendered] = {}

    def for_job(self, job: Job) -> Rendered:
        """The job's catalogue as it stands now."""
        if self._revision != self._registry.revision or len(self._rendered) > _MAX_KINDS:
            self._rendered = {}
            self._revision = self._registry.revision
        grants = job.spec.grants
        found = self._rendered.get(grants)
        if found is None:
            catalogue = build_catalogue(self._registry, grants=grants)
            found = Rendered(catalogue, catalogue.as_json_text().encode())
            self._rendered[grants] = found
        return found

    def version_for(self, job: Job) -> str:
        """The job's catalogue version as it stands now."""
        return self.for_job(job).catalogue.version
