"""The loopback proxy: where a job's commands find the hosts that the job was allowed.

The container has no network. What a command asks of the proxy goes over the job's socket, with the job's
token, as one CONNECT a connection; the orchestrator decides.
"""
