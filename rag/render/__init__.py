"""Rendering: answers, evidence and tables as Markdown or HTML, and exports."""
