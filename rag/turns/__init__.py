"""What one turn is made of: the draft, the writer behind its gate, the tools."""
