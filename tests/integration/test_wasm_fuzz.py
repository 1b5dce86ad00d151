"""Mutated components, sidecars and answers against the loader in a process of its own (PD-41)."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.fuzz.wasm_cases import make_case, mutated
from tests.fuzz.wasm_loader import Found, hunt
from tests.fuzz.wasm_seeds import Seeds, build_seeds

SEED = 1
_HUNT_S = 15.0
_CASES = 60


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return build_seeds(tmp_path_factory.mktemp("seeds"))


@pytest.mark.timeout(240)
async def test_nothing_that_a_file_holds_or_a_guest_says_ends_or_holds_the_process(seeds: Seeds) -> None:
    """PD-41: for a bounded time; scripts/fuzz goes on for as long as one likes, with other seeds."""
    counted = await hunt(seeds, SEED, itertools.count(), _HUNT_S, at_least=_CASES)
    kinds = {what.partition(":")[0] for what in counted}
    assert kinds == {"component", "sidecar", "answers", "typed"}, f"seed {SEED}: {counted}"
    assert any("active" in what for what in counted), "some get as far as being called"


def test_a_case_is_made_of_its_seed_and_number_alone(seeds: Seeds) -> None:
    first = [make_case(seeds, SEED, number).as_line() for number in range(40)]
    assert first == [make_case(seeds, SEED, number).as_line() for number in range(40)]
    assert len(set(first)) > 30
    assert first != [make_case(seeds, SEED + 1, number).as_line() for number in range(40)]
    assert mutated(random.Random(1), b"some bytes") == mutated(random.Random(1), b"some bytes")


@pytest.mark.parametrize(
    ("ends", "said"), [("os.abort()", "died with -6"), ("time.sleep(600)", "did not answer")]
)
async def test_a_process_that_dies_or_is_silent_is_found_and_its_case_kept(
    seeds: Seeds, tmp_path: Path, ends: str, said: str
) -> None:
    """PD-41: the hunt itself can fail."""
    child = tmp_path / "ends.py"
    child.write_text(f"import os, sys, time\nprint('ready', flush=True)\nsys.stdin.readline()\n{ends}\n")
    with pytest.raises(Found, match=rf"{said}: --seed 7 --case 3 .*kept in (\S+)") as caught:
        await hunt(seeds, 7, iter([3]), 60.0, child_of=(str(child),), answer_s=5.0)
    kept = Path(str(caught.value).splitlines()[0].rpartition(" ")[2])
    assert (kept / "guest.wasm").read_bytes() == make_case(seeds, 7, 3).wasm
