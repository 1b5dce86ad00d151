"""Engine adapters, named by technology."""
