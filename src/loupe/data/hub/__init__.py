"""Data sets of the hub: which there are, fetching them whole, and where they lie."""
