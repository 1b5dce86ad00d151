"""Guests made for a test: what each does is a few lines of WebAssembly text."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
WORLD = REPOSITORY / "wasm_tools" / "wit" / "world.wit"
CALC = REPOSITORY / "wasm_tools" / "guests" / "calc" / "calc.wasm"

ECHO = "(call $answer (local.get $params) (local.get $len))"
TEXT_SCHEMA = '{"type":"object","properties":{"text":{"type":"string"}}}'


@dataclass(frozen=True)
class Source:
    """A guest's pieces; the defaults make one that echoes its parameters."""

    execute: str = ECHO
    schema: str = TEXT_SCHEMA
    imports: str = ""
    declarations: str = ""
    before_schema: str = ""
    memory: str = "2"
    world: str = "portside:tool/sandboxed-tool@1.0.0"
    edit: tuple[str, str] = ("", "")  # text of world.wit, and what this guest was built with instead

    def core(self) -> str:
        """The core module's text."""
        data = "".join(f"\\{byte:02x}" for byte in self.schema.encode())
        return Template((HERE / "guest.wat").read_text()).substitute(
            execute=self.execute,
            schema=data,
            schema_bytes=len(self.schema.encode()),
            description_bytes=min(20, len(self.schema.encode())),
            imports=self.imports,
            declarations=self.declarations,
            before_schema=self.before_schema,
            memory=self.memory,
        )


def build(source: Source, out: Path) -> Path:
    """Make a component of it."""
    return build_core(source.core(), source.world, out, source.edit)


def build_core(core: str, world: str, out: Path, edit: tuple[str, str] = ("", "")) -> Path:
    """Make a component of a core module's text, for any world of the probes."""
    with tempfile.TemporaryDirectory() as scratch:
        wit = Path(scratch, "wit")
        shutil.copytree(HERE / "wit", wit)
        (wit / "deps" / "tool").mkdir()
        world_text = WORLD.read_text()
        assert edit[0] in world_text
        (wit / "deps" / "tool" / "world.wit").write_text(world_text.replace(*edit, 1))
        text, embedded = Path(scratch, "core.wat"), Path(scratch, "embedded.wasm")
        text.write_text(core)
        _wasm_tools("component", "embed", str(wit), str(text), "--world", world, "-o", str(embedded))
        _wasm_tools("component", "new", str(embedded), "-o", str(out))
    return out


def core_binary(text: str, out: Path) -> Path:
    """A core module or component from its text."""
    source = out.with_suffix(".wat")
    source.write_text(text)
    _wasm_tools("parse", str(source), "-o", str(out))
    return out


def _wasm_tools(*args: str) -> None:
    done = subprocess.run(["wasm-tools", *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


HTTP_CALL = """(block (result i32)
      (call $http (i32.const 4096) (i32.const 1) (local.get $params) (local.get $len)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 256))
      (if (result i32) (i32.load8_u (i32.const 256))
        (then (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264))))
        (else (call $answer (i32.load (i32.const 272)) (i32.load (i32.const 276))))))"""
HTTP = Source(
    # http-request's result lies at 256: tag; ok is status, headers, body at 272; err a string at 260.
    imports="""(import "portside:tool/host@1.0.0" "http-request"
      (func $http (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))""",
    execute=HTTP_CALL,
)
"""Sends its parameters as the URL and answers the body, or the refusal."""

LOOP = Source(execute="(loop $l (br $l)) unreachable")
LOOP_AFTER_A_CALL = replace(HTTP, execute=f"(drop {HTTP_CALL}) (loop $l (br $l)) unreachable")
