"""What a benchmark's samples come to (PD-16)."""

from __future__ import annotations

import pytest

from bench.measurements import Sample, figures
from bench.report import table


def _sample(case: str, *, cpu_s: float, seconds: float = 1.0) -> Sample:
    return Sample(case=case, callers=8, calls=1_000, seconds=seconds, cpu_s=cpu_s)


def test_the_least_cost_and_the_best_rate_of_all_repetitions_count() -> None:
    found = figures(
        [
            _sample("bare", cpu_s=0.05),
            _sample("product", cpu_s=0.12, seconds=2.0),
            _sample("bare", cpu_s=0.04),
            _sample("product", cpu_s=0.10),
        ],
        bare="bare",
    )
    bare, product = found
    assert bare.ratio == pytest.approx(1.0)
    assert product.cpu_us == pytest.approx(100.0)
    assert product.ratio == pytest.approx(2.5)
    assert product.spread == pytest.approx(1.2)
    assert product.calls_per_s == pytest.approx(1_000.0)
    assert product.calls == 2_000


def test_the_table_names_every_case_with_its_ratio() -> None:
    shown = table(figures([_sample("bare", cpu_s=0.04), _sample("product", cpu_s=0.1)], bare="bare"))
    assert [line.split()[0] for line in shown.splitlines()[1:]] == ["bare", "product"]
    assert "2.50" in shown
