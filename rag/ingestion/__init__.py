"""Ingestion of files: `file_reader` reads and stores them, `pipeline` embeds what is stored."""
