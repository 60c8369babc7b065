"""Data on disk: pages, data files, data sets and their downloads, digests."""
