"""What of the indexes is held in memory, and which process holds the embedded one."""
