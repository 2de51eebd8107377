"""Work in the background: its rows, its queue, and what is done."""
