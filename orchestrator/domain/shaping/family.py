"""What the kinds of providers refuse in a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

Family = Literal["openai", "openai-strict", "anthropic", "gemini", "generic"]
FAMILIES: tuple[Family, ...] = ("openai", "openai-strict", "anthropic", "gemini", "generic")
USUAL: tuple[Family, ...] = ("openai", "anthropic", "gemini", "generic")
"""Those that a request of Portside's own may go to."""

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_GEMINI_TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_GEMINI_PROPERTY_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
_GEMINI_HOST = "googleapis.com"


@dataclass(frozen=True, slots=True)
class FamilyLimits:
    """One family's own rules; those that every provider shares stand in the code.

    Attributes:
        max_tools: in one request; None is unlimited.
        max_description_chars: of a tool; None is unlimited.
        arrays_need_items: an array without `items` is refused.
        tool_name: what a tool's name must match.
        property_name: what a property's name must match.
    """

    max_tools: int | None = None
    max_description_chars: int | None = None
    arrays_need_items: bool = True
    tool_name: re.Pattern[str] = TOOL_NAME
    property_name: re.Pattern[str] = PROPERTY_NAME


LIMITS: Mapping[Family, FamilyLimits] = {
    "openai": FamilyLimits(max_tools=128, max_description_chars=1024),
    # Opted into for a tool by whoever calls the API; Portside itself sends the plain form.
    "openai-strict": FamilyLimits(max_tools=128, max_description_chars=1024, arrays_need_items=False),
    "anthropic": FamilyLimits(arrays_need_items=False),
    "gemini": FamilyLimits(
        arrays_need_items=False, tool_name=_GEMINI_TOOL_NAME, property_name=_GEMINI_PROPERTY_NAME
    ),
    # Any model may stand behind a server that speaks as OpenAI does: every schema rule, and no counts.
    "generic": FamilyLimits(),
}


def family_of(dialect: Literal["openai", "anthropic"], base_url: str | None) -> Family:
    """The family of a provider, by the API it speaks and whether it is the vendor's own."""
    if dialect == "anthropic":
        return "anthropic"
    host = urlsplit(base_url or "").hostname or ""
    if host == _GEMINI_HOST or host.endswith(f".{_GEMINI_HOST}"):
        return "gemini"
    return "openai" if base_url is None else "generic"
