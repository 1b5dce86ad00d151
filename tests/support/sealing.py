"""Sealers under known keys."""

from __future__ import annotations

from orchestrator.adapters.secrets.master_key import KeyOrigin, MasterKey
from orchestrator.adapters.secrets.sealing import AesGcmSealer


def make_sealer(fill: int = 7) -> AesGcmSealer:
    """A sealer; the same `fill` is the same master key."""
    return AesGcmSealer(MasterKey(bytes([fill]) * 32, KeyOrigin.ENVIRONMENT))
