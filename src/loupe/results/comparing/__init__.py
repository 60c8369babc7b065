"""Two or more runs of one benchmark held against each other: which may be, what differs, and what got worse."""
