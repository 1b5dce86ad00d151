"""Measures the hot route against a bare server: `scripts/bench`."""
