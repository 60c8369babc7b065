"""The faults of form that `loupe lint` looks for in answers to OmniDocBench, in the order in which they are mended."""

from __future__ import annotations

from loupe.benchmarks.omnidocbench.lint.math_mending import escaped_formulas, prose_between_dollars, unclosed_formulas
from loupe.benchmarks.omnidocbench.lint.mending import (
    images,
    joined_blocks,
    page_fence,
    repeated_blocks,
    single_newlines,
)
from loupe.benchmarks.omnidocbench.lint.table_mending import latex_tables, markdown_tables
from loupe.types import FormatFault

FAULTS = (
    FormatFault(
        name="page-fence", meaning="marks of a code fence around the page", edits=page_fence, adapter="unfence"
    ),
    FormatFault(name="image", meaning="images in the answer", edits=images),
    FormatFault(name="latex-table", meaning="LaTeX tables, which score 0", edits=latex_tables),
    FormatFault(name="md-table", meaning="Markdown tables, which lose cells and lines", edits=markdown_tables),
    FormatFault(name="escaped-math", meaning=r"characters escaped in formulas (\_, &lt;)", edits=escaped_formulas),
    FormatFault(name="unclosed-math", meaning=r"$, $$, \[ or \( that nothing closes", edits=unclosed_formulas),
    FormatFault(name="dollar-prose", meaning="prose between dollars", edits=prose_between_dollars),
    FormatFault(name="repeated-block", meaning="repeated blocks", edits=repeated_blocks),
    FormatFault(name="single-newline", meaning="lines of an answer without an empty line", edits=single_newlines),
    FormatFault(name="joined-block", meaning="blocks joined by a single newline", edits=joined_blocks),
)
