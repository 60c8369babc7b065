"""What is said of all pages together: the official score, interval and errors."""
