"""The master key is given, found, or made once (PD-7)."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.adapters.secrets.master_key import KeyOrigin, MasterKey, MasterKeyUnusable

KEY = bytes(range(200, 232))


def test_a_new_key_is_made_and_found_again(tmp_path: Path):
    home = tmp_path / "home"
    made = MasterKey.load(home)
    found = MasterKey.load(home)
    assert (made.origin, found.origin) == (KeyOrigin.CREATED, KeyOrigin.FILE)
    assert made.value == found.value
    assert len(made.value) == 32
    assert made.path == found.path == home / "keys" / "master.key"


def test_the_file_and_its_folders_are_for_their_owner_alone(tmp_path: Path):
    path = MasterKey.load(tmp_path / "home").path
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["master.key"]


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(KEY).decode(),
        base64.b64encode(KEY).decode().rstrip("="),
        base64.urlsafe_b64encode(KEY).decode() + "\n",
        KEY.hex(),
        KEY.hex().upper(),
    ],
)
def test_a_given_key_wins_and_no_file_is_made(tmp_path: Path, text: str):
    key = MasterKey.load(tmp_path, text)
    assert (key.value, key.origin, key.path) == (KEY, KeyOrigin.ENVIRONMENT, None)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_value_is_none(tmp_path: Path):
    assert MasterKey.load(tmp_path, "").origin is KeyOrigin.CREATED


@pytest.mark.parametrize(
    "text",
    [
        "hunter2",
        "x" * 64,
        base64.b64encode(KEY[:31]).decode(),
        base64.b64encode(KEY * 2).decode(),
        "é" * 44,
        "=",
    ],
)
def test_a_malformed_key_is_refused_without_showing_it(tmp_path: Path, text: str):
    with pytest.raises(MasterKeyUnusable, match=r"PORTSIDE_MASTER_KEY .* openssl rand -base64 32") as failure:
        MasterKey.load(tmp_path, text)
    assert text == "=" or text not in str(failure.value)
    assert failure.value.__cause__ is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_others_may_read_is_refused(tmp_path: Path):
    path = MasterKey.load(tmp_path).path
    assert path is not None
    path.chmod(0o640)
    with pytest.raises(MasterKeyUnusable, match="chmod 600"):
        MasterKey.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 44])
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    path = MasterKey.load(tmp_path).path
    assert path is not None
    path.write_bytes(content)
    with pytest.raises(MasterKeyUnusable, match=r"master\.key"):
        MasterKey.load(tmp_path)
    assert path.read_bytes() == content


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(MasterKeyUnusable, match=r"master\.key can't be read: Not a directory"):
        MasterKey.load(tmp_path / "file" / "home")


def test_many_that_start_together_share_one_key(tmp_path: Path):
    with ThreadPoolExecutor(16) as pool:
        keys = list(pool.map(MasterKey.load, [tmp_path] * 16))
    assert len({key.value for key in keys}) == 1
    assert [key.origin for key in keys].count(KeyOrigin.CREATED) == 1


def test_a_key_does_not_show_itself(tmp_path: Path):
    key = MasterKey.load(tmp_path)
    assert repr(key.value) not in repr(key)
    assert "value" not in repr(key)
