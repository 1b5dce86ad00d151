"""What an instance says it can do: routing metadata, never a permission."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.network.refusals import Refusal

MAX_CAPABILITIES = 20
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing an agent can do."""

    id: str
    name: str
    description: str = ""


def slug(name: str) -> str:
    """An id made of a name: lower case, words joined by '-'; empty when nothing is left of it."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\W_]+", "-", folded).strip("-")[:MAX_NAME_CHARS].rstrip("-")


def declared(items: Sequence[Mapping[str, Any]]) -> tuple[Capability, ...] | Refusal:
    """Read a declaration; an empty one is a valid one.

    Returns:
        The capabilities in the order given, or `invalid_capabilities` naming the item that is wrong.
    """
    if len(items) > MAX_CAPABILITIES:
        return _invalid(f"{len(items)} capabilities were given; at most {MAX_CAPABILITIES} are kept")
    found: dict[str, Capability] = {}
    for place, item in enumerate(items):
        capability = _one(place, item)
        if isinstance(capability, Refusal):
            return capability
        if capability.id in found:
            return _invalid(
                f"capabilities[{place}] has the id {capability.id!r} of an earlier one; give each its own id"
            )
        found[capability.id] = capability
    return tuple(found.values())


def _one(place: int, item: Mapping[str, Any]) -> Capability | Refusal:
    name = str(item["name"]).strip()
    description = str(item.get("description") or "").strip()
    given = item.get("id")
    own_id = slug(name) if given is None else str(given).strip()
    if not name or len(name) > MAX_NAME_CHARS:
        return _invalid(f"capabilities[{place}].name must have 1 to {MAX_NAME_CHARS} characters")
    if not own_id or len(own_id) > MAX_NAME_CHARS:
        return _invalid(f"capabilities[{place}] needs an id of 1 to {MAX_NAME_CHARS} characters")
    if len(description) > MAX_DESCRIPTION_CHARS:
        return _invalid(f"capabilities[{place}].description is over {MAX_DESCRIPTION_CHARS} characters")
    return Capability(own_id, name, description)


def _invalid(message: str) -> Refusal:
    return Refusal("invalid_capabilities", f"{message}; nothing was changed")
