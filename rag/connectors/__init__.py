"""Sources of documents (folders, repositories, sites, stores) and their synchronisation."""
