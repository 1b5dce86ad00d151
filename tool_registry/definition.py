"""What a model is told about a tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


def schema_text(schema: Mapping[str, Any]) -> str:
    """Serialise a schema the one way in which definitions are compared.

    Key order is the owner's; no spaces; characters are kept as they are.
    """
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool's name, description and JSON Schema parameters, exactly as its owner gave them.

    The schema is kept as text, serialised once; two definitions are identical when their texts are.
    It is never rewritten: a copy shaped for a model provider is made elsewhere.

    Attributes:
        name: the name models call it by; `^[a-zA-Z0-9_-]{1,64}$` once registered.
        description: free text for the model.
        parameters_json: the JSON Schema of the arguments object.

    Source: hosted-workers-and-remote-tools, "name, description, and JSON Schema parameters unchanged".
    """

    name: str
    description: str
    parameters_json: str

    @classmethod
    def of(cls, name: str, description: str, parameters: Mapping[str, Any]) -> Self:
        """Make a definition from a schema object.

        Raises:
            ValueError: the schema holds NaN or Infinity.
        """
        return cls(name, description, schema_text(parameters))

    @property
    def parameters(self) -> dict[str, Any]:
        """The schema as a fresh object; changing it changes nothing else."""
        return json.loads(self.parameters_json)

    def renamed(self, name: str) -> ToolDefinition:
        """The same definition under another name."""
        return ToolDefinition(name, self.description, self.parameters_json)

    def as_json(self) -> dict[str, Any]:
        """The wire form: `{name, description, parameters}`."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}
