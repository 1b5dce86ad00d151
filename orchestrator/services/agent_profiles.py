"""An agent's profile as people write it, in a file or a request; a fault is named in its place."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from orchestrator.domain.egress.patterns import parse_patterns
from orchestrator.domain.model_choice import split_model
from orchestrator.domain.network.agents import (
    AgentDefinition,
    AgentKind,
    LaunchSettings,
    ManagedBy,
    Responsibility,
    Skill,
)
from orchestrator.domain.network.capabilities import Capability, slug
from orchestrator.domain.network.identities import AgentName
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal
from orchestrator.domain.network.resources import resource_key

_Word = Annotated[str, Field(min_length=1, max_length=64)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _named(value: Any) -> Any:
    """A bare text is a name."""
    return {"name": value} if isinstance(value, str) else value


class SkillText(_Part):
    """A skill, or its bare name."""

    name: _Word
    description: str = Field(default="", max_length=500)


class CapabilityText(_Part):
    """A capability, or its bare name; without an id it has the name's."""

    name: _Word
    id: str = Field(default="", max_length=64)
    description: str = Field(default="", max_length=500)

    def capability(self) -> Capability:
        """As the network knows it."""
        return Capability(self.id or slug(self.name), self.name, self.description)


class ResponsibilityText(_Part):
    """What an agent answers for."""

    resource_key: str | None = Field(default=None, max_length=500)
    actions: list[_Word] = Field(default_factory=list[str], max_length=20)

    @field_validator("resource_key")
    @classmethod
    def _canonical(cls, text: str | None) -> str | None:
        return None if text is None else _taken(resource_key(text))


class LaunchText(_Part):
    """How an instance is started."""

    image: str = Field(default="", max_length=500)
    model: str = Field(default="", max_length=500)
    mission: str = Field(default="", max_length=100_000)
    autostart: bool = False
    allow_hosts: list[str] = Field(default_factory=list[str], max_length=100)

    @field_validator("model")
    @classmethod
    def _known(cls, model: str) -> str:
        if model:
            split_model(model)
        return model

    @field_validator("allow_hosts")
    @classmethod
    def _hosts(cls, texts: list[str]) -> list[str]:
        return [str(pattern) for pattern in parse_patterns(texts)]


class AgentProfile(_Part):
    """Everything that is said of an agent but its name."""

    kind: AgentKind = AgentKind.WORKER
    summary: str = Field(default="", max_length=1_000)
    description: str = Field(default="", max_length=20_000)
    url: str = Field(default="", max_length=2_000)
    payment_address: str | None = Field(default=None, max_length=500)
    capabilities: list[Annotated[CapabilityText, BeforeValidator(_named)]] = Field(
        default_factory=list[CapabilityText], max_length=100
    )
    skills: list[Annotated[SkillText, BeforeValidator(_named)]] = Field(
        default_factory=list[SkillText], max_length=100
    )
    tags: list[_Word] = Field(default_factory=list[str], max_length=50)
    examples: list[Annotated[str, Field(min_length=1, max_length=2_000)]] = Field(
        default_factory=list[str], max_length=50
    )
    version: str = Field(default="", max_length=64)
    groups: list[_Word] = Field(default_factory=list[str], max_length=50)
    responsibilities: list[ResponsibilityText] = Field(
        default_factory=list[ResponsibilityText], max_length=100
    )
    launch: LaunchText = LaunchText()

    @field_validator("groups")
    @classmethod
    def _normal(cls, names: list[str]) -> list[str]:
        return [_taken(normal_name(name)) for name in names]

    @field_validator("capabilities")
    @classmethod
    def _told_apart(cls, found: list[CapabilityText]) -> list[CapabilityText]:
        ids = [one.capability().id for one in found]
        if "" in ids:
            raise ValueError(f"{found[ids.index('')].name!r} makes no id; give it an id of its own")
        twice = next((one for one in ids if ids.count(one) > 1), None)
        if twice is not None:
            raise ValueError(f"two capabilities have the id {twice!r}; give each its own")
        return found

    @model_validator(mode="after")
    def _startable(self) -> AgentProfile:
        if self.launch.autostart and self.kind is not AgentKind.WORKER:
            raise ValueError(f"a {self.kind.value} is not started by Portside; leave launch.autostart out")
        return self

    @classmethod
    def of(cls, definition: AgentDefinition) -> AgentProfile:
        """The profile that a definition has."""
        launch = definition.launch
        return cls(
            kind=definition.kind,
            summary=definition.summary,
            description=definition.description,
            url=definition.url,
            payment_address=definition.payment_address,
            capabilities=[
                CapabilityText(name=one.name, id=one.id, description=one.description)
                for one in definition.capabilities
            ],
            skills=[SkillText(name=one.name, description=one.description) for one in definition.skills],
            tags=list(definition.tags),
            examples=list(definition.examples),
            version=definition.version,
            groups=list(definition.groups),
            responsibilities=[
                ResponsibilityText(resource_key=one.resource_key, actions=list(one.actions))
                for one in definition.responsibilities
            ],
            launch=LaunchText(
                image=launch.image,
                model=launch.model,
                mission=launch.mission,
                autostart=launch.autostart,
                allow_hosts=list(launch.allow_hosts),
            ),
        )

    def definition(self, name: AgentName, at: datetime, managed_by: ManagedBy) -> AgentDefinition:
        """The agent that has this profile."""
        launch = self.launch
        return AgentDefinition(
            name=name,
            created_at=at,
            kind=self.kind,
            summary=self.summary,
            description=self.description,
            url=self.url,
            payment_address=self.payment_address,
            capabilities=tuple(one.capability() for one in self.capabilities),
            skills=tuple(Skill(one.name, one.description) for one in self.skills),
            tags=tuple(self.tags),
            examples=tuple(self.examples),
            version=self.version,
            groups=tuple(dict.fromkeys(self.groups)),
            responsibilities=tuple(
                Responsibility(one.resource_key, tuple(one.actions)) for one in self.responsibilities
            ),
            launch=LaunchSettings(
                launch.image, launch.model, launch.mission, launch.autostart, tuple(launch.allow_hosts)
            ),
            managed_by=managed_by,
        )


def _taken(value: str | Refusal) -> str:
    if not isinstance(value, Refusal):
        return value
    raise ValueError(value.message)
