"""Model requests in a provider's own dialect: which may pass for a job, and what they cost. Pure."""
