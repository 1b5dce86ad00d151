"""Implementations of ports, named by their technology."""
