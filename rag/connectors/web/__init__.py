"""Pages of the web, by their links, a sitemap or a feed."""

from rag.connectors.web.source import WebSource, open_web
