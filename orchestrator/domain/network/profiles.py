"""An agent's profile as texts whose meaning can be compared with a need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.domain.network.agents import AgentDefinition
from orchestrator.domain.network.capabilities import Capability

# What an agent says of itself costs every searcher time, so there is an end to it.
MAX_PARTS = 48


@dataclass(frozen=True, slots=True)
class ProfileTexts:
    """What a search compares a need with.

    Attributes:
        whole: everything, as one text.
        parts: what can answer a need by itself: summary, description, each capability, skill and example.
    """

    whole: str
    parts: tuple[str, ...]

    @property
    def every(self) -> tuple[str, ...]:
        """The whole, then the parts: the order of their vectors."""
        return (self.whole, *self.parts)

    @property
    def key(self) -> str:
        """Names the texts: other texts, another key."""
        lines = "\0".join(self.every)
        return hashlib.sha256(lines.encode(errors="surrogatepass")).hexdigest()


def profile_texts(definition: AgentDefinition, declared: Iterable[Capability] = ()) -> ProfileTexts:
    """The texts of an agent's profile.

    Args:
        definition: its name, summary, description, capabilities, skills, tags and examples are taken.
        declared: what its live instances say they can do besides.
    """
    able = [_titled(one.name, one.description) for one in (*definition.capabilities, *declared)]
    skills = [_titled(one.name, one.description) for one in definition.skills]
    prose = [definition.summary, definition.description, *able, *skills, *definition.examples]
    parts = tuple(dict.fromkeys(text for text in (_line(one) for one in prose) if text))[:MAX_PARTS]
    tags = ", ".join(definition.tags)
    whole = ". ".join(text for text in (_spoken(definition.name), *parts, tags) if text)
    return ProfileTexts(whole, parts or (whole,))


def _titled(name: str, description: str) -> str:
    return f"{_spoken(name)}: {description}" if description else _spoken(name)


def _spoken(name: str) -> str:
    """A name's words, as prose has them."""
    return " ".join(name.replace("-", " ").replace("_", " ").split())


def _line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
