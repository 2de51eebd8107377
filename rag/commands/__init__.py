"""What `rag.cli` calls: ingest, evaluate, doctor, and how a terminal and a server are spoken to."""
