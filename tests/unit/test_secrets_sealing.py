"""Sealed values open in their own row, under their own master key, unchanged (PD-7)."""

from __future__ import annotations

from typing import TypedDict

import pytest

from orchestrator.ports.secrets import SecretUnreadable
from tests.support.sealing import make_sealer


class Place(TypedDict):
    table: str
    row: str
    version: int


PLACE: Place = {"table": "secrets", "row": "KEY", "version": 3}


@pytest.mark.parametrize("value", [b"", b"value", bytes(range(256)) * 100])
def test_a_value_opens_in_its_own_row(value: bytes):
    assert make_sealer().open(make_sealer().seal(value, **PLACE), **PLACE) == value


def test_sealing_twice_gives_different_bytes():
    sealer = make_sealer()
    assert sealer.seal(b"value", **PLACE) != sealer.seal(b"value", **PLACE)


@pytest.mark.parametrize(
    "place",
    [
        {"table": "signing_keys", "row": "KEY", "version": 3},
        {"table": "secrets", "row": "OTHER", "version": 3},
        {"table": "secrets", "row": "KEY", "version": 2},
        {"table": "secretsK", "row": "EY", "version": 3},
        {"table": 'secrets", "KEY', "row": "", "version": 3},
    ],
)
def test_a_value_does_not_open_elsewhere(place: Place):
    with pytest.raises(SecretUnreadable):
        make_sealer().open(make_sealer().seal(b"value", **PLACE), **place)


def test_a_change_of_any_byte_is_noticed():
    sealed = make_sealer().seal(b"value", **PLACE)
    for index in range(len(sealed)):
        changed = sealed[:index] + bytes([sealed[index] ^ 1]) + sealed[index + 1 :]
        with pytest.raises(SecretUnreadable):
            make_sealer().open(changed, **PLACE)


def test_a_cut_value_is_noticed():
    sealed = make_sealer().seal(b"value", **PLACE)
    for length in range(len(sealed)):
        with pytest.raises(SecretUnreadable):
            make_sealer().open(sealed[:length], **PLACE)


def test_another_master_key_is_named_as_the_cause():
    with pytest.raises(SecretUnreadable, match="another master key"):
        make_sealer(8).open(make_sealer(7).seal(b"value", **PLACE), **PLACE)
