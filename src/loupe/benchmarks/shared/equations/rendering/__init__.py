"""Equations as KaTeX draws them in Chromium, many at once, remembered on disk.

Protocol: docs/protocols/olmocr_bench.md#rendering.
"""
