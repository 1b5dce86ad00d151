"""What was measured, and what it comes to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """One repetition.

    Attributes:
        case: what was called: a target, and its tool.
        cpu_s: of the server's process.
    """

    case: str
    callers: int
    calls: int
    seconds: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Figure:
    """The repetitions of one case with so many callers.

    Other work on the machine only ever adds to the CPU a call takes (caches, switches), so the smallest
    value is the nearest to the truth; of the rates it is the largest.

    Attributes:
        cpu_us: per call, the least of all repetitions.
        spread: the largest CPU per call over the least; 1.0 is a quiet machine.
        ratio: CPU per call over that of the bare server with as many callers.
    """

    case: str
    callers: int
    calls: int
    cpu_us: float
    spread: float
    calls_per_s: float
    ratio: float


def figures(samples: Iterable[Sample], *, bare: str) -> list[Figure]:
    """One figure a case and number of callers, in the order in which they came.

    Args:
        samples: the case `bare` among them, with every number of callers.
        bare: what the others are compared with.
    """
    grouped: defaultdict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        grouped[sample.case, sample.callers].append(sample)
    floor = {callers: min(_costs(group)) for (case, callers), group in grouped.items() if case == bare}
    return [_figure(group, floor[callers]) for (_, callers), group in grouped.items()]


def _figure(group: list[Sample], floor_us: float) -> Figure:
    costs = _costs(group)
    return Figure(
        case=group[0].case,
        callers=group[0].callers,
        calls=sum(sample.calls for sample in group),
        cpu_us=min(costs),
        spread=max(costs) / min(costs),
        calls_per_s=max(sample.calls / sample.seconds for sample in group),
        ratio=min(costs) / floor_us,
    )


def _costs(group: list[Sample]) -> list[float]:
    return [1e6 * sample.cpu_s / sample.calls for sample in group]
