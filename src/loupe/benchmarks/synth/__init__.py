"""Generated pages with exact truth. docs/benchmarks/synth.md."""
