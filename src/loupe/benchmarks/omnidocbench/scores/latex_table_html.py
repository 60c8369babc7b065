"""LaTeX tables as HTML: what fixed mode scores, and what parity mode names beside upstream's 0.

Protocol: docs/protocols/omnidocbench.md#tables and #modes.
"""

from __future__ import annotations

from loupe.benchmarks.shared.table_answers.any_spelling import table_of_tabular
from loupe.benchmarks.shared.table_answers.spans import environments


def latex_table_to_html(latex: str) -> str:
    r"""Every `tabular` of a predicted LaTeX table as a `<table>`; "" where there is none.

    >>> latex_table_to_html("\\begin{tabular}{ll} a & b \\\\ \\end{tabular}")
    '<table><tr><td>a</td><td>b</td></tr></table>'
    """
    return "".join(table_of_tabular(latex[span.start : span.end]) for span in environments(latex, "tabular"))
