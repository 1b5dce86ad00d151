"""A command in the loop's place: any agent, started in the sandbox with a model and tools but no key."""
