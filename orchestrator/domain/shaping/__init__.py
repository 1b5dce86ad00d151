"""Copies of tool schemas, shaped so that a provider takes them; the originals never change."""
