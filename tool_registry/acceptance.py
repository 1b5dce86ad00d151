"""What it takes for a tool to be taken in: a name it may have, words that are text, a schema that holds."""

from __future__ import annotations

from collections.abc import Mapping

from tool_registry.definition import ToolDefinition
from tool_registry.errors import DuplicateTool, IllegalName, InvalidSchema, ProtectedName, RegistrationError
from tool_registry.names import LEGAL, NameRequest, may_hold, protected_for
from tool_registry.schema import CompiledSchema, is_placeholder
from tool_registry.tool import Tool, ToolSource, ToolTraits
from tool_registry.visibility import ToolState

_FIXED_NAMES = frozenset({ToolSource.LOCAL, ToolSource.NETWORK, ToolSource.MANAGEMENT, ToolSource.PROXY})


def name_request(tool: Tool) -> NameRequest:
    """The name that a tool asks for."""
    traits = tool.traits
    proposed = tool.definition.name
    return NameRequest(
        traits.owner, traits.original_name or proposed, proposed, traits.source in _FIXED_NAMES
    )


def check_name(request: NameRequest, traits: ToolTraits, taken: Mapping[str, str]) -> None:
    """Refuse a name that is reserved, whatever suffix it would get, or fixed and taken.

    Raises:
        ProtectedName: it is reserved for tools of another source.
        DuplicateTool: another owner holds it.
    """
    name = request.legal
    if not may_hold(name, traits.source):
        raise ProtectedName(
            f"{traits.owner} offers {request.original[:200]!r}, which would be named {name[:200]!r};"
            f" that name is reserved for {protected_for(name)} tools: rename the tool or its server"
        )
    if request.fixed and name in taken:
        raise DuplicateTool(f"{traits.owner} and {taken[name]} both offer {name!r}; remove one")


def accepted_schema(
    tool: Tool, state: ToolState, request: NameRequest, known: Mapping[str, CompiledSchema]
) -> CompiledSchema | None:
    """A tool's compiled schema, from `known` where it is there; None for one that is missing.

    Raises:
        RegistrationError: the tool can't be taken at all.
    """
    if not request.original.strip() or not request.proposed.strip():
        raise IllegalName(f"{request.owner} offers a tool without a name; give it one")
    if request.fixed and not LEGAL.fullmatch(request.proposed):
        raise IllegalName(
            f"{request.proposed!r} is not a legal tool name (a-z, A-Z, 0-9, _ and -, 64 at most)"
        )
    if not _is_text(tool.definition.description):
        raise RegistrationError(
            f"{request.owner}, tool {request.original!r}: its description holds half of a surrogate pair"
        )
    if state not in {ToolState.ACTIVE, ToolState.DISABLED}:
        return None
    text = tool.definition.parameters_json
    if tool.traits.source is ToolSource.WASM and _says_nothing(text):
        return None
    if text in known:
        return known[text]
    try:
        return CompiledSchema(text)
    except InvalidSchema as error:
        raise InvalidSchema(f"{request.owner}, tool {request.original!r}: {error.message}") from None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _says_nothing(text: str) -> bool:
    if not text.strip():
        return True
    try:
        return is_placeholder(ToolDefinition("", "", text).parameters)
    except ValueError:
        return False  # not JSON: the schema check says so
