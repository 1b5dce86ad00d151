r"""Scripts of a model: what each turn expects to be shown, and what it answers.

```yaml
turns:
  - expect:
      tools: [shell, network_claim]
      system_messages: 2
    say: I take the parser.
    call:
      - tool: network_claim
        arguments: {scope: "parser/**"}
  - expect:
      last_tool_result: {tool: network_claim, is_error: false}
    capture: {claim: /claimId}
    call:
      - {tool: network_release, arguments: {claimId: "${claim}"}}
  - say: Done.
```

A turn with `until: TEXT` is given at most `repeat` times, and no more once a message holds the text.
`capture: {task: {pattern: "task (\S+)"}}` finds a value in any message.

`${name}` stands for a captured value; `$${` is a plain `${`, as a shell's variables need it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from orchestrator.ports.models import FinishReason


def _one_or_more(value: object) -> object:
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType] - checked next


def _pointer_or_mapping(value: object) -> object:
    return {"pointer": value} if isinstance(value, str) else value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Texts = Annotated[list[str], BeforeValidator(_one_or_more)]


class ResultExpectation(_Strict):
    """What the newest tool result, or the newest one of `tool`, has to be like."""

    tool: str | None = None
    contains: Texts = Field(default_factory=list[str])
    equals: JsonValue = None
    matches: str | None = None
    is_error: bool | None = None

    @model_validator(mode="after")
    def _pattern_compiles(self) -> Self:
        try:
            re.compile(self.matches or "")
        except re.error as fault:
            raise ValueError(f"matches is no regular expression: {fault}") from None
        return self


class Expectation(_Strict):
    """What the request has to show.

    Attributes:
        schemas: a tool's parameters, exactly: the same values in the same order.
        messages_contain: each text stands in some message.
    """

    tools: Texts = Field(default_factory=list[str])
    tools_absent: Texts = Field(default_factory=list[str])
    schemas: dict[str, dict[str, JsonValue]] = Field(default_factory=dict[str, dict[str, JsonValue]])
    last_tool_result: Annotated[list[ResultExpectation], BeforeValidator(_one_or_more)] = Field(
        default_factory=list[ResultExpectation]
    )
    messages_contain: Texts = Field(default_factory=list[str])
    system_messages: int | None = Field(default=None, ge=0)


class Capture(_Strict):
    """A value of the newest tool result, or of the newest one of `tool`; or what a pattern's one group finds.

    Attributes:
        pattern: looked for in all messages, the newest first; `pointer` is left out then.
    """

    pointer: str = Field(default="", pattern=r"^(/|$)")
    tool: str | None = None
    pattern: str | None = None

    @model_validator(mode="after")
    def _has_one_group(self) -> Self:
        try:
            groups = 1 if self.pattern is None else re.compile(self.pattern).groups
        except re.error as fault:
            raise ValueError(f"pattern is no regular expression: {fault}") from None
        if groups != 1:
            raise ValueError("pattern needs one group, which says what is captured")
        return self


class Call(_Strict):
    """A tool call; `arguments` given as text is sent as it stands, valid JSON or not."""

    tool: str
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict[str, JsonValue])
    id: str | None = None


class Usage(_Strict):
    """Tokens to report."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)


class Failure(_Strict):
    """A provider's failure, raised whenever the conversation stands at this turn."""

    message: str
    status: Literal[429, 502, 504] = 502
    retryable: bool = False
    retry_after_s: float | None = Field(default=None, ge=0)
    cause: str | None = None
    fatal: bool = False


class Turn(_Strict):
    """One answer, given `repeat` times in a row.

    Attributes:
        until: each text stands in some message: from then on it is not given (again).
    """

    expect: Expectation = Expectation()
    capture: dict[str, Annotated[Capture, BeforeValidator(_pointer_or_mapping)]] = Field(
        default_factory=dict[str, Capture]
    )
    say: str | None = None
    call: list[Call] = Field(default_factory=list[Call])
    finish_reason: FinishReason | None = None
    usage: Usage = Usage()
    delay_s: float = Field(default=0, ge=0)
    error: Failure | None = None
    repeat: int = Field(default=1, ge=1)
    until: Texts = Field(default_factory=list[str])

    @model_validator(mode="after")
    def _answers_or_fails(self) -> Self:
        answers = self.say is not None or bool(self.call)
        if answers == (self.error is not None):
            raise ValueError("a turn has say and/or call, or else error")
        return self


class Document(_Strict):
    """The whole file."""

    turns: list[Turn] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Script:
    """A script that was read; `lines` holds the line on which each turn begins."""

    name: str
    turns: tuple[Turn, ...]
    lines: tuple[int, ...]

    def turn_at(self, answers: int, over: Callable[[Turn, int], bool]) -> int | None:
        """The index of the turn that follows `answers` answers; None after the end.

        Args:
            answers: how many there are.
            over: whether what ends a turn was shown when there were so many answers.
        """
        given = 0
        for index, turn in enumerate(self.turns):
            for _ in range(turn.repeat):
                if turn.until and over(turn, given):
                    break
                if given == answers:
                    return index
                given += 1
        return None
