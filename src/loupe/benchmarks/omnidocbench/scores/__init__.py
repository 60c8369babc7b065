"""What matched pairs are worth, and what is said of all pages together."""
