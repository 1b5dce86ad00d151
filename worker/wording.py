"""What a model is told about its calls and answers."""

from __future__ import annotations

from collections.abc import Sequence

from tool_registry.errors import CallError, Outcome

CUT_CALLS = (
    "Not run: your answer was cut off by the output limit, so this call may be incomplete and no call of"
    " that answer was run. Send smaller parts: fewer calls in one answer, and long content in several writes."
)
CUT_TEXT = "Your answer was cut off by the output limit. Go on exactly where it stopped, in smaller parts."
EMPTY = "Your last answer was empty. Go on with the task, or call finish if it is over."
CANCELLED = "Cancelled before it finished; it may have had effects."
NOT_STARTED = "Cancelled: not run."


def unknown_tool(written: str, near: Sequence[str]) -> str:
    """There is no such tool; names that come near, no full list."""
    if not written.strip():
        return "Not run: the call has no tool name. Use the exact name of one of your tools."
    hint = f" Did you mean {' or '.join(near)}?" if near else " Use the exact name of one of your tools."
    return f"Not run: there is no tool named {written[:100]!r}.{hint}"


def call_error(error: CallError) -> str:
    """Why a call gave no output, what is known of its effect, and what to do."""
    parts = [f"{error.code}: {error.message}"]
    listed = [
        f"- {one.pointer or 'the object'}: {one.message}"
        for one in error.violations
        if one.message not in error.message
    ]
    parts.extend(listed)
    if error.hint and error.hint not in error.message:
        parts.append(error.hint)
    if error.retry_after_s is not None:
        parts.append(f"It may be tried again in {error.retry_after_s:g} s.")
    if error.outcome is Outcome.UNKNOWN:
        parts.append("It is not known whether the call had an effect: check before you repeat it.")
    return "\n".join(parts)


def dropped_calls(count: int, kept: int) -> str:
    """A note on calls beyond the bound."""
    return (
        f"Your answer held {kept + count:,} calls; only the first {kept} were kept. Make fewer in one answer."
    )


def repeated(count: int) -> str:
    """The notice before a loop is ended."""
    return (
        f"You have now made the same calls {count} times with the same results. Repeating them will not help:"
        " try something else, or call finish with success false and say what stands in the way."
    )
