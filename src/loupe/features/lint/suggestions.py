"""Output adapters as an option, and as a suggestion after a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from loupe.typed import encode_json


def adapters_option(steps: Iterable[str]) -> str:
    """The option that sets the output adapters of an engine, to be pasted into a shell."""
    return f"-o 'adapters={encode_json(list(steps)).decode()}'"


def suggested_adapters(path: Path) -> list[str]:
    """Return a line on the adapters that the answers of a run call for, and how to score them so without asking again.

    Return none if they call for none.
    """
    from loupe.benchmarks.registry import benchmark_of_run
    from loupe.features.lint.adapter_faults import suggestion
    from loupe.pipeline.rescoring import score_anyway
    from loupe.runs.folder import RunFolder

    folder = RunFolder.open(path)
    benchmark = benchmark_of_run(folder.info.benchmark)
    if (found := suggestion(folder, benchmark)) is None:
        return []
    price = f" (what it costs: loupe lint {shlex.quote(str(path))})"
    again = f"{score_anyway(path, folder.info)} {adapters_option(found.adapters)}"
    said = f"{found.answers:,} of {found.looked_at:,} answers hold {' and '.join(found.faults)}"
    return [f"{said}{price}; the same answers without that: {again}"]
