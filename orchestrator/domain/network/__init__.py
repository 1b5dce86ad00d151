"""The agent network's rules: who is who, who may do what, and what overlaps what.

Everything here is pure. A rule that says no returns a `Refusal`; the services turn it into an answer.
"""
