"""Data on disk: page images and PDF pages, digests."""
