"""What one request may take, and what is shared between all who ask."""
