"""What model selection asks and how answers are scored: is a document of one type, and what stands on it.

A folder that `loupe select --save` wrote opens as a benchmark. Protocol: docs/select.md
"""

from loupe.benchmarks.folders.selection.saved import FILE, open_selection

__all__ = ["FILE", "open_selection"]
