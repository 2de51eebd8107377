"""How files become searchable: `reading` stores them, `ingest` embeds what is stored."""
