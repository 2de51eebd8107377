"""Ingestion of files: read, cut into chunks, stored, and embedded."""
