"""The loopback relay: where an agent's model SDK finds the job's model.

It listens on 127.0.0.1 of the container, adds the job token and passes requests on over the unix socket. It
knows two paths and keeps every other door shut.
"""
