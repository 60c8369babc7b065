"""About a dozen pages made by Loupe itself, with exact ground truth: a first look at any engine, with nothing to fetch.

Pages and references come from script/make_sample_pages.py; what they test: docs/benchmarks/sample_pages.md.
"""

from __future__ import annotations

from pathlib import Path

from loupe.benchmarks.folders.own import open_folder

#: A folder in the format of docs/own-data.md, inside the package.
DATA = Path(__file__).parent / "sample_pages_data"

benchmark = open_folder(DATA)
