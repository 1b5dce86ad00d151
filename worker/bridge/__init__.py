"""The bridge: the job's tools as an MCP server, for any agent in the container.

    an agent's MCP client ── stdio ── `pipe` (holds no secret) ── unix socket ── `gate` in the worker

The worker speaks MCP itself, so that the process in the agent's hands holds nothing: no token, no tool, no
rule. Only this package knows the MCP SDK.
"""
