"""Untrusted bytes are compiled where they can do no harm, and only our own machine code is loaded."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import subprocess
import sys
from asyncio.subprocess import PIPE
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.open_processes import open_processes
from tests.support.wasm.guests import CALC, REPOSITORY
from tests.support.wasm.workshop import workshop
from tool_registry.visibility import ToolState
from wasm_tools.cache import CompiledCache, load_or_create_key
from wasm_tools.compile import CompileBounds, CompileRefused, compile_component
from wasm_tools.engine import config_fingerprint, wasmtime_version
from wasm_tools.loading import load_wasm_tool

KEY = b"k" * 32


def leb128(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def section(number: int, payload: bytes) -> bytes:
    return bytes([number]) + leb128(len(payload)) + payload


def compile_bomb(branches: int) -> bytes:
    """A component whose one function has 1,000 locals and as many branches as wanted."""
    branch = b"".join(
        b"\x20"
        + leb128(i * 7 % 1000)
        + b"\x04\x40\x20"
        + leb128(i * 3 % 1000)
        + b"\x21"
        + leb128(i % 1000)
        + b"\x0b"
        for i in range(1000)
    )
    body = b"\x01" + leb128(1000) + b"\x7f" + branch * (branches // 1000) + b"\x0b"
    function = section(10, b"\x01" + leb128(len(body)) + body)
    core = b"\0asm\x01\0\0\0" + section(1, b"\x01\x60\0\0") + section(3, b"\x01\0") + function
    return b"\0asm\x0d\0\x01\0" + section(1, core)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (CompileBounds(cpu_s=1), "more than 1 s of CPU time"),
        (CompileBounds(wall_s=1), "takes more than 1 s"),
        (CompileBounds(memory_bytes=256 << 20), "more than 256 MiB of memory"),
    ],
)
async def test_a_component_that_is_costly_to_compile_is_refused(
    tmp_path: Path, bounds: CompileBounds, said: str
) -> None:
    """BR-091: the compiler's own time and memory are bounded too."""
    with pytest.raises(CompileRefused, match=said):
        await compile_component(compile_bomb(200_000), tmp_path / "out", bounds)
    assert open_processes() == []


async def test_cancelling_ends_the_compiler(tmp_path: Path) -> None:
    task = asyncio.create_task(compile_component(compile_bomb(200_000), tmp_path / "out", CompileBounds()))
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert open_processes() == []


async def test_machine_code_is_kept_private_and_used_again(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        await load_wasm_tool(CALC, shop.runtime)
    kept = {path.suffix: path for path in (tmp_path / "cache").iterdir()}
    assert set(kept) == {".cwasm", ".seal", ".lock"}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept.values())
    before = kept[".cwasm"].stat()
    impossible = CompileBounds(wall_s=0.0)
    async with workshop(tmp_path, compile_bounds=impossible) as shop:
        assert (await load_wasm_tool(CALC, shop.runtime)).state is ToolState.ACTIVE
    assert kept[".cwasm"].stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("spoiled", [".cwasm", ".seal"])
async def test_changed_machine_code_is_made_anew_never_loaded(tmp_path: Path, spoiled: str) -> None:
    """A `.cwasm` that we did not write would run as native code."""
    async with workshop(tmp_path) as shop:
        await load_wasm_tool(CALC, shop.runtime)
    path = next((tmp_path / "cache").glob(f"*{spoiled}"))
    good = path.read_bytes()
    changed = tmp_path / "changed"
    changed.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    changed.replace(path)  # not in place: machine code that is still loaded lies in memory mapped from it
    async with workshop(tmp_path) as shop:
        assert (await load_wasm_tool(CALC, shop.runtime)).state is ToolState.ACTIVE
    assert path.read_bytes() == good or spoiled == ".cwasm"


def adopted(cache: CompiledCache, wasm: bytes, code: bytes = b"machine code") -> Path:
    """Stands in for a compiler."""
    with cache.scratch() as compiled:
        compiled.write_bytes(code)
        return cache.adopt(wasm, compiled)


def test_a_seal_holds_for_one_name_and_one_key(tmp_path: Path) -> None:
    cache = CompiledCache(tmp_path, KEY)
    path = adopted(cache, b"first")
    assert cache.find(b"first") == path
    assert cache.find(b"second") is None
    other = CompiledCache(tmp_path, b"o" * 32)
    assert other.find(b"first") is None
    moved = adopted(cache, b"second", b"other code")
    for suffix in (".cwasm", ".seal"):
        path.with_suffix(suffix).replace(moved.with_suffix(suffix))
    assert cache.find(b"second") is None, "a seal from another name"


def test_machine_code_of_another_wasmtime_or_configuration_is_a_miss(tmp_path: Path) -> None:
    cache = CompiledCache(tmp_path, KEY)
    path = adopted(cache, b"component")
    digest, version, config = path.stem.split("-")
    assert (digest, version, config) == (
        hashlib.sha256(b"component").hexdigest(),
        wasmtime_version(),
        config_fingerprint(),
    )
    for stem in (f"{digest}-0.0.1-{config}", f"{digest}-{version}-{'0' * 16}"):
        for suffix in (".cwasm", ".seal"):
            path.with_suffix(suffix).rename(tmp_path / f"{stem}{suffix}")
        assert cache.find(b"component") is None
        path = tmp_path / f"{stem}.cwasm"


def of_another_wasmtime(directory: Path, version: str) -> list[Path]:
    """A pair of files, and the lock of those who use that version."""
    engine = f"{version}-{'0' * 16}"
    files = [directory / f"{'a' * 64}-{engine}.{kind}" for kind in ("cwasm", "seal")]
    files.append(directory / f"{engine}.lock")
    for file in files:
        file.touch()
    return files


def test_files_of_a_wasmtime_that_nobody_runs_any_more_are_swept_and_others_are_not(tmp_path: Path) -> None:
    """PD-40: nothing is left behind by an update, and an orchestrator that still runs keeps its files."""
    cache = CompiledCache(tmp_path, KEY)
    own = adopted(cache, b"component")
    gone, running = (of_another_wasmtime(tmp_path, version) for version in ("1.0.0", "2.0.0"))
    before_locks = of_another_wasmtime(tmp_path, "3.0.0")
    before_locks.pop().unlink()
    others_file = tmp_path / "notes.txt"
    others_file.touch()
    with running[-1].open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        adopted(cache, b"another")
        assert [file for file in (*gone, *before_locks) if file.exists()] == []
        assert all(file.exists() for file in running)
    adopted(cache, b"a third")
    assert [file for file in running if file.exists()] == []
    assert cache.find(b"component") == own
    assert others_file.exists()


def test_a_cache_holds_the_files_of_its_wasmtime_until_it_is_closed(tmp_path: Path) -> None:
    """PD-40: a sweep by another version takes what this one loads only when it is gone."""
    first, second = CompiledCache(tmp_path, KEY), CompiledCache(tmp_path, KEY)
    lock = next(tmp_path.glob("*.lock"))

    def is_held() -> bool:
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    first.close()
    assert is_held()
    second.close()
    assert not is_held()


def test_half_of_a_pair_is_swept(tmp_path: Path) -> None:
    cache = CompiledCache(tmp_path, KEY)
    code, seal = adopted(cache, b"first"), adopted(cache, b"second")
    code.with_suffix(".seal").unlink()
    seal.unlink()
    whole = adopted(cache, b"third")
    assert {path for path in tmp_path.iterdir() if path.suffix != ".lock"} == {
        whole,
        whole.with_suffix(".seal"),
    }


def test_what_a_killed_process_was_compiling_into_is_swept_and_not_before(tmp_path: Path) -> None:
    """PD-40: a scratch file has an owner for as long as its process lives."""
    script = """if True:
        import sys
        from pathlib import Path
        from wasm_tools.cache import CompiledCache

        with CompiledCache(Path(sys.argv[1]), b"k" * 32).scratch() as scratch:
            print(scratch, flush=True)
            sys.stdin.readline()
    """
    command = (sys.executable, "-c", script, str(tmp_path))
    cache = CompiledCache(tmp_path, KEY)
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        scratch = Path(process.stdout.readline().strip())
        adopted(cache, b"first")
        assert scratch.exists()
        process.kill()
        process.wait()
        adopted(cache, b"second")
        assert not scratch.exists()


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    key = load_or_create_key(tmp_path / "key")
    assert load_or_create_key(tmp_path / "key") == key
    assert len(key) == 32
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "short").write_bytes(b"x")
    with pytest.raises(ValueError, match="remove it"):
        load_or_create_key(tmp_path / "short")


def test_a_key_that_several_make_at_once_is_one_and_whole(tmp_path: Path) -> None:
    """A second orchestrator that starts meanwhile neither reads half a key nor keeps its own."""
    for round_number in range(20):
        file = tmp_path / str(round_number)
        with ThreadPoolExecutor(8) as pool:
            keys = set(pool.map(load_or_create_key, [file] * 8))
        assert len(keys) == 1
    assert len(list(tmp_path.iterdir())) == 20


def test_code_and_seal_stay_together_whoever_writes_them(tmp_path: Path) -> None:
    """Compilers' outputs may differ: the seal of one beside the code of another would never load."""

    def adopt(number: int) -> bool:
        cache = CompiledCache(tmp_path, KEY)
        path = adopted(cache, b"component", b"machine code %d" % number)
        return cache.find(b"component") == path

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(adopt, range(400)))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".cwasm", ".lock", ".seal"]


async def test_two_processes_compile_the_same_component_at_once(tmp_path: Path) -> None:
    """Both load it, and one pair of files is left, which a third one finds."""
    script = """if True:
        import asyncio, sys
        from pathlib import Path
        from tests.support.wasm.workshop import context, RealClock
        from wasm_tools.cache import load_or_create_key
        from wasm_tools.loading import load_wasm_tool
        from wasm_tools.runtime import WasmRuntime

        async def main(home, calc):
            key = load_or_create_key(home / "key")
            runtime = WasmRuntime(cache_dir=home / "cache", cache_key=key, clock=RealClock())
            print("ready", flush=True)
            sys.stdin.readline()
            offer = await load_wasm_tool(calc, runtime)
            print((await offer.tool.execute({"expression": "6*7"}, context())).result, flush=True)
            await runtime.close()

        asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
    """
    arguments = (sys.executable, "-c", script, str(tmp_path), str(CALC))
    both = [
        await asyncio.create_subprocess_exec(*arguments, cwd=REPOSITORY, stdin=PIPE, stdout=PIPE)
        for _ in range(2)
    ]
    async with asyncio.timeout(60):
        for process in both:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        answers = await asyncio.gather(*(process.communicate(b"go\n") for process in both))
    assert [json.loads(out)["result"] for out, _ in answers] == ["42", "42"]
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".cwasm", ".lock", ".seal"]
    cache = CompiledCache(tmp_path / "cache", load_or_create_key(tmp_path / "key"))
    assert cache.find(CALC.read_bytes()) is not None
