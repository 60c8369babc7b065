"""OmniDocBench 1.5, end to end: a page's Markdown becomes items, items are matched with the ground truth, and scored.

Protocol: docs/benchmarks/omnidocbench.md. Official evaluator: opendatalab/OmniDocBench, as of 2025-12 (v1.5).
"""
