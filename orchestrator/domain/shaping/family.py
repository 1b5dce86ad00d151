"""What the kinds of providers refuse in a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Family = Literal["openai", "anthropic", "generic"]
FAMILIES: tuple[Family, ...] = ("openai", "anthropic", "generic")

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class FamilyLimits:
    """One family's own rules; those that every provider shares stand in the code.

    Attributes:
        max_tools: in one request; None is unlimited.
        max_description_chars: of a tool; None is unlimited.
        arrays_need_items: an array without `items` is refused.
    """

    max_tools: int | None = None
    max_description_chars: int | None = None
    arrays_need_items: bool = True


LIMITS: Mapping[Family, FamilyLimits] = {
    "openai": FamilyLimits(max_tools=128, max_description_chars=1024),
    "anthropic": FamilyLimits(arrays_need_items=False),
    # Any model may stand behind a server that speaks as OpenAI does: every schema rule, and no counts.
    "generic": FamilyLimits(),
}


def family_of(dialect: Literal["openai", "anthropic"], base_url: str | None) -> Family:
    """The family of a provider, by the API it speaks and whether it is the vendor's own."""
    if dialect == "anthropic":
        return "anthropic"
    return "openai" if base_url is None else "generic"
