"""The canonical tool registry: definitions, visibility, validation and the one execution pipeline.

The core (everything but `tool_registry.mcp`) is pure: it imports no web framework, driver, SDK, clock or
random source. Time and identifiers are passed in, so the same classes run in the orchestrator, in its
in-process jobs and inside a worker's container.
"""
