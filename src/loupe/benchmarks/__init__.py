"""Benchmarks: one module each, found by its file name."""

from loupe.benchmarks.registry import benchmark_id, benchmark_ids, benchmark_of_run, filed_as, get_benchmark
from loupe.lazily import callable_package

__all__ = ["benchmark_id", "benchmark_ids", "benchmark_of_run", "filed_as", "get_benchmark"]

callable_package(__name__, "loupe.api.listing:benchmarks")
