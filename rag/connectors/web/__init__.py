"""Web pages as sources, found by links, a sitemap or a feed."""

from rag.connectors.web.source import WebSource, open_web
