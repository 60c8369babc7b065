"""Readers: one file per package, run in its environment by `foreign_worker.py`; none of them imports Loupe."""
