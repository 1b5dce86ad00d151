"""The direct call says what the binding's own call says, of every answer and every failure (DC-2)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from wasmtime import Store, WasmtimeError
from wasmtime.component import Component, Func, Record

from tests.support.wasm.guests import TEXT_SCHEMA, Source, build
from wasm_tools.direct import TooLong, call_execute, call_text
from wasm_tools.engine import WasmEngine
from wasm_tools.host import RefusingHost
from wasm_tools.limits import Limits
from wasm_tools.link import CallLinker
from wasm_tools.state import CallState
from wasm_tools.surface import TOOL_INTERFACE, read_surface

Called = tuple[str | None, str | None] | str

ANSWERS_CONTEXT = "(call $answer (local.get $context) (local.get $context_len))"
# By the first byte of its parameters: both, neither, an error, a trap, a bad pointer, bad UTF-8, or an echo.
MANY_ANSWERS = Source(
    execute="""(local $first i32)
      (local.set $first (i32.load8_u (local.get $params)))
      (drop (call $answer (local.get $params) (local.get $len)))
      (if (i32.eq (local.get $first) (i32.const 66)) (then (i32.store (i32.const 28) (i32.const 1))
        (i32.store (i32.const 32) (local.get $params)) (i32.store (i32.const 36) (local.get $len))))
      (if (i32.eq (local.get $first) (i32.const 78)) (then (i32.store (i32.const 16) (i32.const 0))))
      (if (i32.eq (local.get $first) (i32.const 69)) (then (i32.store (i32.const 16) (i32.const 0))
        (i32.store (i32.const 28) (i32.const 1))
        (i32.store (i32.const 32) (local.get $params)) (i32.store (i32.const 36) (local.get $len))))
      (if (i32.eq (local.get $first) (i32.const 84)) (then unreachable))
      (if (i32.eq (local.get $first) (i32.const 80)) (then (i32.store (i32.const 20) (i32.const -8))))
      (if (i32.eq (local.get $first) (i32.const 68)) (then (i32.store (i32.const 16) (i32.const 9))))
      (if (i32.eq (local.get $first) (i32.const 85)) (then (i32.store8 (local.get $params) (i32.const 255))))
      (i32.const 16)"""
)


@contextmanager
def opened(engine: WasmEngine, component: Component, function: str) -> Generator[tuple[Store, Func]]:
    """A function of a fresh instance."""
    state = CallState(Limits(), time.monotonic() + 60)
    linker = CallLinker(
        engine.engine, read_surface(engine.engine, component), state, RefusingHost(), lambda: 0
    )
    with Store(engine.engine) as store:
        store.set_epoch_deadline(1 << 40)
        instance = linker.instantiate(store, component)
        index = instance.get_export_index(store, function, instance.get_export_index(store, TOOL_INTERFACE))
        assert index is not None
        found = instance.get_func(store, index)
        assert found is not None
        yield store, found
    linker.close()


def said(call: Callable[[], Called]) -> Called:
    """What came, or the words of the failure without its addresses."""
    try:
        return call()
    except WasmtimeError as error:
        return " ".join(str(error).rpartition("Caused by:")[2].split())


def stock(store: Store, function: Func, params: str, context: str | None) -> Called:
    request = Record()
    request.params, request.context = params, context  # type: ignore[attr-defined] - the binding's way
    response: Any = function(store, request)
    return response.output, response.error


@pytest.fixture(scope="module")
def engine() -> Generator[WasmEngine]:
    made = WasmEngine()
    yield made
    made.close()


def made(engine: WasmEngine, folder: Path, source: Source) -> Component:
    return Component(engine.engine, build(source, folder / "guest.wasm").read_bytes())


def texts() -> list[tuple[str, str | None]]:
    """Every kind of answer, and a few hundred texts of any characters that can be encoded."""
    dice = random.Random(20)
    kinds = [f"{first} \u00e9\U0001f600" for first in "BNETPDUx"]
    wild = [
        "".join(
            chr(dice.choice((dice.randrange(0xD800), dice.randrange(0xE000, 0x110000)))) for _ in range(size)
        )
        for size in (*range(40), 255, 4_096, 70_000)
    ]
    contexts = [None, "", "\0", "{}", "\U0010ffff" * 9]
    return [(params, dice.choice(contexts)) for params in (*kinds, *wild)]


def test_both_calls_agree_on_every_answer_and_failure(tmp_path: Path, engine: WasmEngine) -> None:
    component = made(engine, tmp_path, MANY_ANSWERS)
    seen: set[str] = set()
    for params, context in texts():
        with opened(engine, component, "execute") as (store, function):
            expected = said(lambda: stock(store, function, params, context))  # noqa: B023 - called at once
        with opened(engine, component, "execute") as (store, function):
            found = said(
                lambda: call_execute(store, function, params, context, max_bytes=1 << 20)  # noqa: B023
            )
        assert found == expected
        seen.add(found if isinstance(found, str) else str([one is None for one in found]))
    assert len(seen) == 8, "four kinds of answers, four failures"


@pytest.mark.parametrize("context", [None, "", "\u00e9" * 3_000])
def test_the_context_reaches_the_guest_or_is_none(
    tmp_path: Path, engine: WasmEngine, context: str | None
) -> None:
    component = made(engine, tmp_path, Source(execute=ANSWERS_CONTEXT))
    with opened(engine, component, "execute") as (store, function):
        answer = call_execute(store, function, "{}", context, max_bytes=1 << 20)
    assert answer == (context or "", None)


def test_a_text_over_its_bound_is_dropped_unread_and_the_store_stays_usable(
    tmp_path: Path, engine: WasmEngine
) -> None:
    component = made(engine, tmp_path, Source())
    with opened(engine, component, "execute") as (store, function):
        with pytest.raises(TooLong) as caught:
            call_execute(store, function, "\u00e9" * 6, None, max_bytes=11)
        assert caught.value.size == 12
        assert call_execute(store, function, "\u00e9" * 6, None, max_bytes=12) == ("\u00e9" * 6, None)
    with opened(engine, component, "schema") as (store, function):
        assert call_text(store, function, max_bytes=1_000) == function(store) == TEXT_SCHEMA
        with pytest.raises(TooLong):
            call_text(store, function, max_bytes=10)


def test_text_that_cannot_be_encoded_leaves_nothing_half_made(tmp_path: Path, engine: WasmEngine) -> None:
    with opened(engine, made(engine, tmp_path, Source()), "execute") as (store, function):
        for params, context in (("\ud800", None), ("{}", "\udfff")):
            with pytest.raises(UnicodeEncodeError):
                call_execute(store, function, params, context, max_bytes=10)
        assert call_execute(store, function, "{}", None, max_bytes=10) == ("{}", None)
