"""`agents.yaml`: agents that a file defines, and that follow it while the service runs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.domain.located_yaml import LocatedYaml, YamlFault
from orchestrator.domain.network.agents import AgentDefinition, ManagedBy
from orchestrator.domain.network.identities import AgentName
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal
from orchestrator.ports.agent_file import AgentFileUnreadable, AgentText
from orchestrator.services.agent_profiles import AgentProfile
from orchestrator.services.network_agents import NetworkAgents
from orchestrator.services.network_members import Refused
from tool_registry.clock import Clock

_log = structlog.get_logger(__name__)
_SCRIPTED = "scripted:"


class AgentFileError(Exception):
    """The file can't be used; the message is one line that names the file, the line and the fault."""


class _Network(BaseModel):
    model_config = ConfigDict(extra="forbid")
    agents: dict[str, AgentProfile | None] = Field(default_factory=dict[str, AgentProfile | None])


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")
    networks: dict[str, _Network] = Field(default_factory=dict[str, _Network])


@dataclass(frozen=True, slots=True)
class FileState:
    """How the file stands.

    Attributes:
        problem: why it is not in use as it is now; "" when it is.
        staying: agents that left it and still have work, a line each.
    """

    name: str
    problem: str = ""
    staying: tuple[str, ...] = field(default=())


class AgentFile:
    """Keeps the agents that the file defines as the file says.

    Args:
        agents: where they are put.
        text: the file.
        clock: dates what is new.
    """

    def __init__(self, agents: NetworkAgents, text: AgentText, clock: Clock) -> None:
        self._agents = agents
        self._text = text
        self._clock = clock
        self._state = FileState(text.name)
        self._seen: tuple[str | None] | None = None

    @property
    def state(self) -> FileState:
        """As of the last `reload`."""
        return self._state

    async def reload(self) -> None:
        """Bring the agents up to the file; cheap when it is the same.

        A file that can't be used changes nothing; `state` and the log say why.

        Raises:
            StoreError: the database does not answer.
        """
        try:
            text = await self._text.read()
            if (text,) == self._seen and not self._state.staying:
                return
            staying = await self._follow(read_agents(text or "", source=self._text.name))
            problem = ""
        except AgentFileUnreadable as error:
            staying, problem, text = [], f"{self._text.name} can't be read: {error}", ""
        except AgentFileError as error:
            staying, problem, text = [], str(error), ""
        except Refused as error:
            staying, problem, text = [], f"{self._text.name}: {error.message}", ""
        if problem and problem != self._state.problem:
            _log.warning("agents_stay_as_they_are", reason=problem)
        self._seen = None if problem else (text,)
        self._state = FileState(self._text.name, problem, tuple(staying))

    async def _follow(self, wanted: Mapping[str, Mapping[str, AgentProfile]]) -> list[str]:
        now = self._clock.now()
        known = await self._agents.networks()
        staying: list[str] = []
        for network in sorted({*known, *wanted}):
            profiles = wanted.get(network, {})
            named = [
                profile.definition(AgentName(name), now, ManagedBy.FILE) for name, profile in profiles.items()
            ]
            folder = Path(self._text.name).parent
            staying += await self._agents.follow(network, [_beside(one, folder) for one in named])
        return staying


def _beside(definition: AgentDefinition, folder: Path) -> AgentDefinition:
    """A script's relative path is seen from the file that names it."""
    prefix, _, path = definition.launch.model.partition(":")
    if f"{prefix}:" != _SCRIPTED or not path or Path(path).is_absolute():
        return definition
    return replace(definition, launch=replace(definition.launch, model=f"{_SCRIPTED}{folder / path}"))


def read_agents(text: str, *, source: str) -> dict[str, dict[str, AgentProfile]]:
    """Profiles by network and agent, both with normal names.

    Args:
        text: YAML; empty defines nobody.
        source: its name, for messages.

    Raises:
        AgentFileError: it is no YAML, holds an unknown or repeated key, or a value that can't be.
    """
    try:
        found = LocatedYaml(text)
    except YamlFault as fault:
        where = source if fault.line is None else f"{source} line {fault.line}"
        raise AgentFileError(f"{where}: {fault.message}") from None
    try:
        document = _Document.model_validate({} if found.value is None else found.value)
    except ValidationError as fault:
        raise AgentFileError(_first_fault(source, found, fault)) from None
    networks: dict[str, dict[str, AgentProfile]] = {}
    for written, network in document.networks.items():
        agents = networks.setdefault(_name(written, ("networks", written), found, source), {})
        for named, profile in network.agents.items():
            loc = ("networks", written, "agents", named)
            name = _name(named, loc, found, source)
            if name in agents:
                raise AgentFileError(
                    f"{source} line {found.line(loc)}: {named}: agent {name!r} is there twice; remove one"
                )
            agents[name] = profile or AgentProfile()
    return networks


def _name(text: str, loc: tuple[str, ...], found: LocatedYaml, source: str) -> str:
    name = normal_name(text)
    if isinstance(name, Refusal):
        raise AgentFileError(f"{source} line {found.line(loc)}: {name.message}")
    return name


def _first_fault(source: str, found: LocatedYaml, fault: ValidationError) -> str:
    error = fault.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"]) or "the document"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = f"unknown key; docs/how-to/agents.md lists the known ones{_near(error['loc'])}"
    elif error["type"] == "string_type":
        message = "a text is wanted; YAML reads this as something else unless it is put in quotes"
    return f"{source} line {found.line(error['loc'])}: {where}: {message}"


def _near(loc: tuple[str | int, ...]) -> str:
    """The known key that an unknown one may be."""
    known = [*AgentProfile.model_fields, "networks", "agents"]
    close = difflib.get_close_matches(str(loc[-1]), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
