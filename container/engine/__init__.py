"""The engine port: what a sandbox is, and what any engine that makes one must do.

Pure: no SDK, no clock. Adapters stand in `container.adapters`.
"""
