"""`--junit` and `--markdown`: what a command found, as files for CI systems and pull requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.cli.shared.exit_verdict import Floor, is_below
from loupe.errors import UsageError
from loupe.files.folder import write_file

if TYPE_CHECKING:
    from loupe.results.comparing.records import Compared
    from loupe.runs.folder import RunFolder

F = TypeVar("F", bound=Callable[..., Any])


def summary_options(function: F) -> F:
    """Both options."""
    kind: Any = click.Path(path_type=Path, dir_okay=False)
    text = "Also a summary as Markdown, for a pull request: tables, and three samples with their texts."
    function = click.option("--markdown", type=kind, metavar="FILE", help=text)(function)
    text = "Also JUnit XML, for a CI system: a test case for each measure, and for each sample without an answer."
    return click.option("--junit", type=kind, metavar="FILE", help=text)(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summaries:
    """The files that were asked for."""

    junit: Path | None
    markdown: Path | None

    def refuse(self) -> None:
        """Raise UsageError where this was asked of a table of all runs."""
        if self.junit or self.markdown:
            option = "--junit" if self.junit else "--markdown"
            raise UsageError(f"{option} needs RUNs to compare", hint="run: loupe compare RUN --baseline RUN")

    def of_comparison(self, compared: Compared) -> None:
        """Write what a comparison found."""
        if self.junit:
            from loupe.results.exports.junit import comparison_suites, junit_xml

            write_file(self.junit, junit_xml(comparison_suites(compared)))
        if self.markdown:
            from loupe.results.exports.markdown import comparison_markdown

            write_file(self.markdown, comparison_markdown(compared).encode())

    def of_runs(self, folders: Sequence[RunFolder], floor: Floor | None = None, measure: str = "") -> None:
        """Write what runs reached, by `measure`; those without a result are in none of the files."""
        from loupe.results.scored_here import result_of

        scored = [(folder, result) for folder in folders if (result := result_of(folder)) is not None]
        if self.junit:
            from loupe.results.exports.junit import junit_xml, run_suite

            suites = [
                run_suite(folder, result, [floor.headline.name] if floor and is_below(result, floor) else [], measure)
                for folder, result in scored
            ]
            write_file(self.junit, junit_xml(suites))
        if self.markdown:
            from loupe.results.exports.markdown import runs_markdown

            write_file(self.markdown, runs_markdown(scored, measure).encode())
