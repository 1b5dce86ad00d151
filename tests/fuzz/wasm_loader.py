"""`python -m tests.fuzz.wasm_loader`: mutated components, sidecars and answers of guests against the loader.

A child process takes each case; one that kills it, or is not answered in time, is kept as a file and named with the
seed and number that make it again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz.wasm_cases import Case, make_case
from tests.fuzz.wasm_seeds import Seeds, build_seeds
from tests.support.wasm.guests import REPOSITORY

_LINE_BYTES = 16 << 20


class Found(Exception):
    """A case that ended or held the process."""


async def hunt(
    seeds: Seeds,
    seed: int,
    numbers: Iterator[int],
    seconds: float,
    *,
    at_least: int = 1,
    child_of: Sequence[str] = ("-m", "tests.fuzz.wasm_child"),
    answer_s: float = 60.0,
) -> Counter[str]:
    """Run cases until the time or the numbers are over; answers how often each came to what.

    Args:
        seeds: to mutate.
        seed: of the cases, with their numbers.
        numbers: of the cases.
        seconds: from when the child is ready; no case begins later,
        at_least: but so many, however slow the machine.
        child_of: what Python runs as the child.
        answer_s: how long one case may take.

    Raises:
        Found: the message names the case.
    """
    with tempfile.TemporaryFile() as words:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, *child_of),
            cwd=REPOSITORY,
            stdin=PIPE,
            stdout=PIPE,
            stderr=words,
            limit=_LINE_BYTES,
        )
        counted: Counter[str] = Counter()
        try:
            if await _line(child, answer_s) != "ready":
                raise Found(f"seed {seed}: the process did not start")
            ends = time.monotonic() + seconds
            for number in numbers:
                if time.monotonic() >= ends and counted.total() >= at_least:
                    break
                case = make_case(seeds, seed, number)
                counted[f"{case.kind}: {await _answer(child, case, (seed, number), answer_s)}"] += 1
            assert child.stdin is not None
            child.stdin.close()
            if await _line(child, answer_s) != "sound":
                raise Found(f"seed {seed}: the runtime was not sound at the end")
        except Found as found:
            await _end(child)
            words.seek(0)
            raise Found(f"{found}\n{words.read().decode(errors='replace')[-4_000:]}") from None
        finally:
            await _end(child)
    return counted


async def _answer(child: Process, case: Case, made_of: tuple[int, int], answer_s: float) -> str:
    assert child.stdin is not None
    child.stdin.write(case.as_line().encode() + b"\n")
    answer = await _line(child, answer_s)
    if answer:
        return answer
    kept = Path(tempfile.mkdtemp(prefix="portside-found-"))
    (kept / "guest.wasm").write_bytes(case.wasm)
    (kept / "guest.capabilities.json").write_bytes(case.sidecar or b'{"version": 1}')
    how = "did not answer" if child.returncode is None else f"died with {child.returncode}"
    seed, number = made_of
    raise Found(f"the process {how}: --seed {seed} --case {number} ({case.kind}), kept in {kept}")


async def _line(child: Process, within_s: float) -> str:
    """The next line; "" when it has died, or says nothing in time."""
    assert child.stdout is not None
    try:
        async with asyncio.timeout(within_s):
            line = await child.stdout.readline()
            if not line:
                await child.wait()
    except TimeoutError:
        return ""
    return line.decode().strip()


async def _end(child: Process) -> None:
    if child.returncode is None:
        child.kill()
    await child.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Hunt, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.wasm_loader", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--case", type=int, help="this one alone")
    given = parser.parse_args(arguments)
    numbers = iter([given.case]) if given.case is not None else iter(range(sys.maxsize))
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds = build_seeds(Path(folder))
        try:
            counted = asyncio.run(hunt(seeds, given.seed, numbers, given.seconds))
        except Found as found:
            sys.exit(str(found))
    for what, count in counted.most_common():
        print(f"{count:7} {what}")
    print(f"{counted.total()} cases")


if __name__ == "__main__":
    main()
