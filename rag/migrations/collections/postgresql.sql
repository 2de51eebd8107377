-- Collections in PostgreSQL. Frozen: later changes are migrations of their own.
ALTER TABLE documents ADD COLUMN collection_id VARCHAR(40) DEFAULT '1' NOT NULL
    REFERENCES collections (id)
-- next
ALTER TABLE documents ALTER COLUMN collection_id DROP DEFAULT
-- next
ALTER TABLE documents DROP CONSTRAINT documents_name_key
-- next
ALTER TABLE documents ADD CONSTRAINT one_document_per_name UNIQUE (collection_id, name)
