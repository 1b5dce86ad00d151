"""The service: jobs, worker API, operator API, model proxy, agent network, storage, command line."""
