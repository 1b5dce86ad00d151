"""The master key, and values sealed under it."""
