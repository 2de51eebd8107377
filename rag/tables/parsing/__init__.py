"""Grids of texts to typed tables."""
