"""The way out: what leaves as Markdown or HTML, and exports."""
