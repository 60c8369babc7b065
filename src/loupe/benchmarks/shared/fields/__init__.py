"""Key information extraction: an answer becomes fields, and each field is compared with its ground truth.

Protocol: docs/benchmarks/nanonets_kie.md. Official scorer: NanoNets/docext @ 0edc8f5.
"""
