"""The guests that are measured, and the same echo for Extism."""

from __future__ import annotations

from pathlib import Path

from wasmtime import wat2wasm

from tests.support.wasm.guests import HTTP, Source, build, build_core

SPINS = Source(
    execute="""(local $left i32) (local.set $left (i32.const 40000000))
      (loop $again
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $again (local.get $left)))
      (call $digit (i32.const 1))"""
)
"""Computes for some tens of milliseconds and touches no memory."""

HALF = """(module
  (memory (export "memory") 2)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
  (func (export "half") (param $n i32) (param i32 i32) (result i32)
    (i64.store (i32.const 40) (i64.extend_i32_s (i32.div_s (local.get $n) (i32.const 2)))) (i32.const 32))
  (func (export "greet") (param i32 i32) (result i32) unreachable)
  (func (export "ping"))
  (func (export "many") (result i32) unreachable)
  (func (export "odd") (param i32 i32 i32))
  (func (export "init"))
  (func (export "portside:probe/shapes#area") (param i32 f64 i32 i32) (result f64) unreachable)
  (func (export "portside:probe/shapes#hull") (param i32 i32) (result i32) unreachable)
  (func (export "portside:probe/shapes#blob") (param i32 i32 i32) (result i32) unreachable))"""
"""A component of another world; `half` takes an option and answers a result."""

_EXTISM_ECHO = """(module
  (import "extism:host/env" "input_length" (func $length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $load8 (param i64) (result i32)))
  (import "extism:host/env" "input_load_u64" (func $load64 (param i64) (result i64)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store8 (param i64 i32)))
  (import "extism:host/env" "store_u64" (func $store64 (param i64 i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (memory (export "memory") 1)
  (func (export "echo") (result i32) (local $at i64) (local $to i64)
    (local.set $to (call $alloc (call $length)))
    (block $words (loop $next
      (br_if $words (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (call $length)))
      (call $store64 (i64.add (local.get $to) (local.get $at)) (call $load64 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 8)))
      (br $next)))
    (block $bytes (loop $next
      (br_if $bytes (i64.ge_u (local.get $at) (call $length)))
      (call $store8 (i64.add (local.get $to) (local.get $at)) (call $load8 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 1)))
      (br $next)))
    (call $output (local.get $to) (call $length))
    (i32.const 0)))"""


def build_all(folder: Path) -> dict[str, Path]:
    """The components by name, and `extism`, a core module."""
    sources = {"echo": Source(), "spins": SPINS, "asks": HTTP, "traps": Source(execute="unreachable")}
    made = {name: build(source, folder / f"{name}.wasm") for name, source in sources.items()}
    made["half"] = build_core(HALF, "kit", folder / "half.wasm")
    made["extism"] = folder / "extism.bin"
    made["extism"].write_bytes(wat2wasm(_EXTISM_ECHO))
    return made
