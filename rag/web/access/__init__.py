"""Callers: who they are, what they may do, their logins and the counters of their requests."""
