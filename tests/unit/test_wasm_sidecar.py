"""The sidecar file is followed to the letter, or refused (DC-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from wasm_tools.limits import Limits
from wasm_tools.sidecar import BadSidecar, read_sidecar, sidecar_path


def write(directory: Path, text: str) -> Path:
    path = directory / "tool.capabilities.json"
    path.write_text(text)
    return path


def test_it_lies_beside_the_component() -> None:
    assert sidecar_path(Path("/tools/a.b.wasm")) == Path("/tools/a.b.capabilities.json")


def test_an_absent_file_changes_nothing(tmp_path: Path) -> None:
    sidecar = read_sidecar(tmp_path / "absent.json")
    assert sidecar.lowered(Limits()) == Limits()
    assert sidecar.description is None
    assert not sidecar.overrides_schema
    assert (sidecar.approval, sidecar.read_only, sidecar.idempotent) == ("never", False, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "valid dictionary"),
        ("{}", "version: Field required"),
        ('{"version":2}', "version: Input should be 1"),
        ('{"version":"1"}', "version: Input should be 1"),
        ('{"version":1,"version":1}', "'version' stands twice"),
        ('{"version":1,"limits":{"timeout_s":NaN}}', "NaN"),
        ('{"version":1,"aproval":"always"}', "aproval: Extra inputs are not permitted"),
        ('{"version":1,"approval":"by_params"}', "approval: Input should be 'never' or 'always'"),
        ('{"version":1,"read_only":"yes"}', "read_only: Input should be a valid boolean"),
        ('{"version":1,"parameters":{}}', "parameters: Extra inputs are not permitted"),
        ('{"version":1,"limits":{"fuel":1}}', "limits.fuel: Extra inputs are not permitted"),
        ('{"version":1,"limits":{"memory_bytes":0}}', "limits.memory_bytes: Input should be greater than 0"),
        (
            '{"version":1,"limits":{"memory_bytes":1.5}}',
            "limits.memory_bytes: Input should be a valid integer",
        ),
        ("[" * 100_000, "not JSON"),
        (f'{{"version":1,"description":"{"x" * 600_000}"}}', "over 512 KiB"),
    ],
)
def test_anything_but_the_known_keys_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadSidecar) as caught:
        read_sidecar(write(tmp_path, text))
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("key", ["http", "secrets", "workspace", "tools"])
def test_a_capability_of_a_later_version_is_refused_not_ignored(tmp_path: Path, key: str) -> None:
    with pytest.raises(BadSidecar, match=f"'{key}' is a capability that this version does not grant yet"):
        read_sidecar(write(tmp_path, f'{{"version":1,"{key}":{{}}}}'))


def test_a_limit_can_be_lowered_only(tmp_path: Path) -> None:
    lower = read_sidecar(write(tmp_path, '{"version":1,"limits":{"timeout_s":2,"memory_bytes":1048576}}'))
    assert lower.lowered(Limits()) == Limits(timeout_s=2, memory_bytes=1 << 20)
    raised = read_sidecar(write(tmp_path, '{"version":1,"limits":{"timeout_s":60}}'))
    with pytest.raises(BadSidecar, match=r"limits\.timeout_s is 60; a sidecar can only lower it from 30"):
        raised.lowered(Limits())
