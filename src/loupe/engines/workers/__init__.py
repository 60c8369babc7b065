"""Other processes: workers for engines in Python, and programs."""
