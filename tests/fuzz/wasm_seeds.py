"""Valid components to begin with, built from source, and one that says whatever its data says."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.integration.test_wasm_typed import KIT
from tests.support.wasm.guests import CALC, HTTP, Source, build, build_core

_MAGIC = b"PUPPET'S-STRINGS"
_TABLE = 1_024 + len(_MAGIC)
_WORDS = 64
TEXT_AT = _TABLE + 4 * _WORDS
TEXT_BYTES = 2_048
_HOST = "portside:tool/host@1.0.0"


def _word(number: int) -> str:
    return f"(i32.load (i32.const {_TABLE + 4 * number}))"


def _words(first: int, count: int) -> str:
    return " ".join(_word(number) for number in range(first, first + count))


# Words 0-2 are what execute, schema and description return, 3-7 whether each host function is called, 8-13 a response,
# 14-15 and 16-17 two texts, and from 18 on the arguments of the host functions.
_PUPPET = f"""(module
  (import "{_HOST}" "log" (func $log (param i32 i32 i32)))
  (import "{_HOST}" "http-request" (func $http (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "{_HOST}" "tool-invoke" (func $invoke (param i32 i32 i32 i32 i32)))
  (import "{_HOST}" "workspace-read" (func $read (param i32 i32 i32)))
  (import "{_HOST}" "secret-exists" (func $secret (param i32 i32) (result i32)))
  (memory (export "memory") 8)
  (global $free (mut i32) (i32.const 65536))
  (data (i32.const 1024) "{_MAGIC.decode()}{"." * (4 * _WORDS + TEXT_BYTES)}")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "portside:tool/tool@1.0.0#execute") (param i32 i32 i32 i32 i32) (result i32)
    (if {_word(3)} (then (call $log {_words(18, 3)})))
    (if {_word(4)} (then (call $http {_words(21, 12)})))
    (if {_word(5)} (then (call $invoke {_words(33, 5)})))
    (if {_word(6)} (then (call $read {_words(38, 3)})))
    (if {_word(7)} (then (drop (call $secret {_words(41, 2)}))))
    {_word(0)})
  (func (export "portside:tool/tool@1.0.0#schema") (result i32) {_word(1)})
  (func (export "portside:tool/tool@1.0.0#description") (result i32) {_word(2)}))"""


@dataclass(frozen=True)
class Seeds:
    """Bytes of valid components.

    Attributes:
        ours: of our world.
        typed: of another.
        puppet: see `with_strings`.
    """

    ours: tuple[bytes, ...]
    typed: bytes
    puppet: bytes


def build_seeds(folder: Path) -> Seeds:
    """Build all of them."""
    ours = [CALC.read_bytes()]
    for number, source in enumerate((Source(), HTTP)):
        ours.append(build(source, folder / f"ours{number}.wasm").read_bytes())
    typed = build_core(KIT, "kit", folder / "kit.wasm").read_bytes()
    world = "portside:tool/sandboxed-tool@1.0.0"
    puppet = build_core(_PUPPET, world, folder / "puppet.wasm").read_bytes()
    assert puppet.count(_MAGIC) == 1
    return Seeds(tuple(ours), typed, puppet)


def good_words(schema_bytes: int, output_bytes: int) -> list[int]:
    """A puppet's words for a tool that works: the texts lie one after the other."""
    words = [0] * _WORDS
    words[0:3] = [_TABLE + 4 * 8, _TABLE + 4 * 14, _TABLE + 4 * 16]
    words[8:14] = [1, TEXT_AT + schema_bytes, output_bytes, 0, 0, 0]
    words[14:18] = [TEXT_AT, schema_bytes, TEXT_AT, min(schema_bytes, 40)]
    for first, texts in ((19, 1), (21, 2), (28, 1), (33, 2), (38, 1), (41, 1)):
        for at in range(first, first + 2 * texts, 2):
            words[at : at + 2] = [TEXT_AT, 8]
    words[32] = words[37] = words[40] = 16_384
    return words


def with_strings(puppet: bytes, words: Sequence[int], text: bytes) -> bytes:
    """The puppet with other words and another text in its memory; the component stays as valid as it was."""
    packed = struct.pack(f"<{_WORDS}I", *(word & 0xFFFF_FFFF for word in words))
    start = puppet.index(_MAGIC) + len(_MAGIC)
    filled = packed + text[:TEXT_BYTES].ljust(TEXT_BYTES, b" ")
    return puppet[:start] + filled + puppet[start + len(filled) :]
