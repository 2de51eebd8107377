"""Limits of a request, and what all requests share."""
