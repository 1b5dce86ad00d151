"""What a hosted job sees of the registry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from tool_registry.definition import ToolDefinition
from tool_registry.registry import Entry, ToolRegistry
from tool_registry.tool import ToolTraits
from tool_registry.visibility import Visible, hosted_visibility


def canonical_json(value: Any) -> str:
    """JSON that is the same in every process and Python version: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools of one caller.

    Attributes:
        tools: sorted by name.
        toolset_instructions: one text an owner, labelled with it; untrusted where the owner is.
        policies: per tool, what a caller needs to run it well.
        version: `sha256:` over canonical JSON of the three.
    """

    tools: tuple[ToolDefinition, ...]
    toolset_instructions: tuple[str, ...]
    policies: Mapping[str, Mapping[str, Any]]
    version: str

    def as_json_text(self) -> str:
        """The wire form; each schema stands in it as its owner's text."""
        tools = ",".join(_definition_text(tool) for tool in self.tools)
        rest = json.dumps(
            {
                "toolset_instructions": self.toolset_instructions,
                "policies": self.policies,
                "catalog_version": self.version,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        return f'{{"tools":[{tools}],{rest[1:]}'


def _definition_text(tool: ToolDefinition) -> str:
    description = json.dumps(tool.description, ensure_ascii=False)
    return (
        f'{{"name":{json.dumps(tool.name)},"description":{description},"parameters":{tool.parameters_json}}}'
    )


def definitions_hash(definitions: Iterable[ToolDefinition]) -> str:
    """`sha256:` over the definitions' own texts, sorted by name: equal only when byte-identical."""
    digest = hashlib.sha256()
    for tool in sorted(definitions, key=lambda one: one.name):
        digest.update(json.dumps([tool.name, tool.description, tool.parameters_json]).encode())
    return f"sha256:{digest.hexdigest()}"


def build_catalogue(
    registry: ToolRegistry, *, grants: AbstractSet[str] = frozenset(), surface: str = "worker"
) -> Catalogue:
    """Everything in the registry that this caller sees.

    Source: hosted-workers-and-remote-tools, "filtered from the canonical ToolRegistry".
    """
    seen = [entry for entry in registry.entries() if _visible(entry, grants, surface)]
    tools = tuple(entry.definition for entry in seen)
    owners = {entry.traits.owner for entry in seen}
    instructions = tuple(
        f"Instructions from {owner} (third-party text about its own tools):\n{text}"
        for owner, text in registry.instructions().items()
        if owner in owners
    )
    policies = {entry.name: policy_of(entry.traits) for entry in seen}
    content = {
        "tools": [tool.as_json() for tool in tools],
        "toolset_instructions": instructions,
        "policies": policies,
    }
    version = "sha256:" + hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return Catalogue(tools, instructions, policies, version)


def policy_of(traits: ToolTraits) -> dict[str, Any]:
    """What a caller needs to know about a tool to run it well."""
    return {
        "read_only": traits.read_only,
        "idempotent": traits.idempotent,
        "destructive": traits.destructive,
        "awaits_others": traits.awaits_others,
        "timeout_s": traits.timeout_s,
        "sensitive": list(traits.sensitive),
    }


def _visible(entry: Entry, grants: AbstractSet[str], surface: str) -> bool:
    verdict = hosted_visibility(entry.name, entry.traits, entry.state, grants=grants, surface=surface)
    return isinstance(verdict, Visible)
