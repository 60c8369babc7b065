"""Questions beside the line: which model to take, how well pages are found, what compression and faults cost."""
