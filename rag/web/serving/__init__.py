"""The server itself: deadlines, lanes, health and logs."""
