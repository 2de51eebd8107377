"""Pages of the web, by their links, a sitemap or a feed."""

from rag.sources.web.source import WebSource, open_web

__all__ = ["WebSource", "open_web"]
