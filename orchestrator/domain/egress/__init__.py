"""Which hosts a job may reach, and which addresses nobody may. Pure."""
