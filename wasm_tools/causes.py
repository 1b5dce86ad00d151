"""What went wrong in a guest, told apart.

wasmtime-py hands out every failure of a component as one error class whose text alone tells the kind.
The texts of the pinned version are matched here and nowhere else, and each is pinned by a test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from wasmtime import ExitTrap, WasmtimeError


class Cause(StrEnum):
    """The kinds of failure that a caller may see."""

    TIMEOUT = "wasm_timeout"
    CANCELLED = "wasm_cancelled"
    TRAP = "wasm_trap"
    OUT_OF_MEMORY = "wasm_out_of_memory"
    STACK_OVERFLOW = "wasm_stack_overflow"
    LIMIT = "wasm_limit"
    BAD_RESULT = "wasm_bad_result"
    EXIT = "wasm_exit"
    HOST_REFUSED = "host_refused"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a guest gave no answer.

    Attributes:
        cause: the kind.
        message: one sentence a model or an author can act on; no backtrace, no address.
    """

    cause: Cause
    message: str


_OWN_FAULT = (
    "the arguments fitted the schema in the tool list, and the tool broke on them: try others, or another way"
)
_TOO_MUCH = "ask it for less at once, within the schema in the tool list"
HINTS = {
    Cause.TIMEOUT: _TOO_MUCH,
    Cause.OUT_OF_MEMORY: _TOO_MUCH,
    Cause.LIMIT: _TOO_MUCH,
    Cause.TRAP: _OWN_FAULT,
    Cause.STACK_OVERFLOW: _OWN_FAULT,
    Cause.BAD_RESULT: _OWN_FAULT,
    Cause.EXIT: _OWN_FAULT,
    Cause.HOST_REFUSED: "the tool was not granted what it tried; other arguments may stay within what it was",
}
"""What a model may do next. It points at the schema that it was shown, and never says another one."""

_TRAPS = (
    ("integer divide by zero", "it divided by zero"),
    ("integer overflow", "an integer overflowed"),
    ("out of bounds memory access", "it accessed memory out of bounds"),
    ("out of bounds table access", "it accessed a table out of bounds"),
    ("uninitialized element", "it called an empty table entry"),
    ("indirect call type mismatch", "it called a function by the wrong type"),
    ("invalid conversion to integer", "it converted a number that does not fit"),
    (
        "`unreachable` instruction executed",
        "it gave up (unreachable); often a panic or an uncaught exception",
    ),
)
_BAD_RESULTS = (
    ("invalid utf-8 sequence", "its answer is not valid UTF-8"),
    ("pointer/length out of bounds of memory", "its answer lies outside its memory"),
    ("pointer out of bounds of memory", "its answer lies outside its memory"),
    ("pointer not aligned", "its answer is not aligned"),
    ("discriminant", "its answer has a variant that does not exist"),
    ("too much data is being copied between the host and the guest", "it handed over more than 128 MiB"),
)
_LIMITED = (
    "exceeds table limits",
    "resource limit exceeded",
    "store handle limit exceeded",  # streams, pollables and the like, which lie outside of the guest's memory
    "exceeds limit",  # random bytes in one go
)
_MINIMUM_MEMORY = re.compile(r"memory minimum size of (\d+) pages exceeds memory limits")
_OUT_OF_MEMORY_WORDS = ("MemoryError", "out of memory", "OutOfMemory")


def classify(error: WasmtimeError, stderr_tail: str) -> Failure:
    """Tell the kind of a failure by wasmtime's text.

    Args:
        error: what a call, or the making of an instance, raised.
        stderr_tail: the last line that the guest wrote there; a guest's runtime names its reason there.
    """
    said = f" It wrote: {stderr_tail}" if stderr_tail else ""
    if isinstance(error, ExitTrap):
        how = f"The tool ended itself with exit code {error.code} instead of answering."
        return Failure(Cause.EXIT, f"{how}{said}")
    text = str(error)
    reason = " ".join(text.rpartition("Caused by:")[2].split())
    if limited := _limited(text, reason):
        return limited
    if "GC heap out of memory" in text or any(word in stderr_tail for word in _OUT_OF_MEMORY_WORDS):
        return Failure(Cause.OUT_OF_MEMORY, f"The tool ran out of memory.{said}")
    for pattern, words in _BAD_RESULTS:
        if pattern in text:
            return Failure(Cause.BAD_RESULT, f"The tool broke its contract: {words}.")
    what = next((words for pattern, words in _TRAPS if pattern in text), reason)
    return Failure(Cause.TRAP, f"The tool crashed: {what}.{said}")


def _limited(text: str, reason: str) -> Failure | None:
    if minimum := _MINIMUM_MEMORY.search(text):
        mib = int(minimum[1]) * 65_536 / (1 << 20)
        return Failure(
            Cause.OUT_OF_MEMORY, f"The tool needs {mib:.1f} MiB of memory to start, more than its limit."
        )
    if any(pattern in text for pattern in _LIMITED):
        return Failure(Cause.LIMIT, f"The tool asks for more than its limits: {reason}.")
    if "call stack exhausted" in text:
        return Failure(Cause.STACK_OVERFLOW, "The tool's calls nest too deep; its stack is full.")
    return None
