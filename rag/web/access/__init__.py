"""Who asks, what they may, and what is remembered of it."""
