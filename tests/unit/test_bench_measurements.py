"""What the benchmark makes of its samples."""

from __future__ import annotations

import pytest

from bench.measurements import Sample, figures
from bench.report import table

SAMPLES = [
    Sample("bare", 8, calls=1_000, seconds=0.10, cpu_s=0.060),
    Sample("portside", 8, calls=1_000, seconds=0.25, cpu_s=0.120),
    Sample("bare", 8, calls=1_000, seconds=0.05, cpu_s=0.040),
    Sample("portside", 8, calls=500, seconds=0.10, cpu_s=0.050),
    Sample("bare", 64, calls=1_000, seconds=0.05, cpu_s=0.025),
    Sample("portside", 64, calls=1_000, seconds=0.10, cpu_s=0.075),
]


def test_the_least_disturbed_repetition_of_each_case_stands_for_it() -> None:
    bare, portside = figures(SAMPLES, bare="bare")[:2]
    assert (bare.cpu_us, portside.cpu_us) == (pytest.approx(40.0), pytest.approx(100.0))
    assert (bare.calls_per_s, portside.calls_per_s) == (pytest.approx(20_000), pytest.approx(5_000))
    assert (bare.calls, portside.calls) == (2_000, 1_500)
    assert (bare.spread, portside.spread) == (pytest.approx(1.5), pytest.approx(1.2))


def test_each_case_is_compared_with_the_bare_server_under_as_many_callers() -> None:
    found = {(one.case, one.callers): one.ratio for one in figures(SAMPLES, bare="bare")}
    assert found["portside", 8] == pytest.approx(2.5)
    assert found["portside", 64] == pytest.approx(3.0)
    assert found["bare", 8] == found["bare", 64] == pytest.approx(1.0)


def test_the_table_has_a_line_for_every_figure() -> None:
    found = figures(SAMPLES, bare="bare")
    assert len(table(found).splitlines()) == 1 + len(found)
