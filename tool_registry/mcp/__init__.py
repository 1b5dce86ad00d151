"""MCP servers as tools, through the official SDK."""
