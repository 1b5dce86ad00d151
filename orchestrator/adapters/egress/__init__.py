"""Egress through squid: its configuration, its process, its log."""
