"""How a job's sandbox is made: the engine port, its adapters and the image."""
