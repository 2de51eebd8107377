"""What an answer card shows, beside the best passage of a plain search and of ours."""
