"""Questions and follow-ups to plans."""
