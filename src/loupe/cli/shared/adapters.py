"""Output adapters on the command line: as an option, and as a suggestion after a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from loupe.cli.shared.output import say
from loupe.typed import encode_json


def adapters_option(steps: Iterable[str]) -> str:
    """The option that sets the output adapters of an engine, to be pasted into a shell."""
    return f"-o 'adapters={encode_json(list(steps)).decode()}'"


def suggest_adapters(path: Path) -> None:
    """Say in one line which adapters the answers call for, and how to score them so without asking again."""
    from loupe.benchmarks.registry import benchmark_of_run
    from loupe.pipeline.mended_truth import score_anyway
    from loupe.runs.folder import RunFolder
    from loupe.studies.lint.adapter_faults import suggestion

    folder = RunFolder.open(path)
    benchmark = benchmark_of_run(folder.info.benchmark)
    if (found := suggestion(folder, benchmark)) is None:
        return
    price = f" (what it costs: loupe lint {shlex.quote(str(path))})"
    again = f"{score_anyway(path, folder.info)} {adapters_option(found.adapters)}"
    said = f"{found.answers:,} of {found.looked_at:,} answers hold {' and '.join(found.faults)}"
    say(f"{said}{price}; the same answers without that: {again}")
