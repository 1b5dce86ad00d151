"""Listening sockets: one a job, and the operators'."""
