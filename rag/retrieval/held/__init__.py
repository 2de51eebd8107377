"""What of chosen collections is kept in memory, so that others' cost a search in them nothing."""
