"""Groundnote for clients of the Model Context Protocol: tools and resources over the JSON API."""
