"""What the services need from the world, one small Protocol a file."""
