"""Texts to vectors: a model on this machine, or any server with /v1/embeddings.

Its modules are imported one by one: what is known of a model is known without loading it.
"""
