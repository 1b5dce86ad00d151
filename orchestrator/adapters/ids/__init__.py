"""Identifiers."""
