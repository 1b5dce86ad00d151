"""Sandboxes on an engine that speaks the Docker API: Docker itself, or Podman through its compatible socket.

engine          `DockerEngine`, the port's implementation
connection      blocking SDK calls, kept off the event loop and given deadlines
faults          why an engine does not answer, and what to do about it
isolation       a `SandboxSpec` as the engine's create call
status          what the engine says about a container, as the port's values
events          one stream for all sandboxes
output          bounded logs and tar streams
description     what this engine can't enforce
discovery       which engine to use
private_daemon  a Docker of one's own, for machines without one
image           the worker image; with wheels, build_context and host_base
worker_starts   how the worker is started in an image
worker_kit      the worker brought along into an image that has none; filled by kit_filling
"""
