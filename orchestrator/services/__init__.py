"""Use cases: they read ports, decide with the domain, and write back."""
