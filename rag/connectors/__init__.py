"""Folders, repositories and sites whose documents are kept in step."""
