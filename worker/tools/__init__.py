"""Container-local development tools."""
