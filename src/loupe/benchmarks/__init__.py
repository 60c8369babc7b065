"""Benchmarks: one module each, found by its file name."""

from loupe.benchmarks.registry import benchmark_id, benchmark_ids, benchmark_of_run, filed_as, get_benchmark

__all__ = ["benchmark_id", "benchmark_ids", "benchmark_of_run", "filed_as", "get_benchmark"]
