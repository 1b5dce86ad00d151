"""The wire between a worker and its orchestrator: every message, path and problem code.

The orchestrator's routes and the worker's client both import it; nothing else crosses that line.
Requests refuse unknown fields and answers ignore them, so an older worker survives a newer
orchestrator.
"""
