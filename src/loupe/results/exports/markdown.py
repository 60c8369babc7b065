"""Comparisons and runs as Markdown that a pull request or the summary of a CI job shows.

Whatever is foreign (names of samples and engines, answers, references, errors) stands in code spans or code blocks,
where nothing of it becomes markup, a link, a picture or a mention of a person. CommonMark 0.31, code spans and blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from loupe.errors import LoupeError
from loupe.quantities import counted
from loupe.results.comparing.records import Compared, Pair
from loupe.results.comparing.regressions import cannot_tell
from loupe.results.control_characters import printable
from loupe.results.group_titles import listed
from loupe.results.headline import headline_of, why_nothing
from loupe.results.references import answers_of, references_of
from loupe.results.scored_here import marked
from loupe.results.sections import failed_cell, failed_count, format_estimate, format_range, format_value, notes_of
from loupe.results.tables.files import code, pipe_table
from loupe.results.tables.record import one_line
from loupe.results.visible_differences import DIFFERENCE_HEADER, difference_cells
from loupe.results.worst_samples import added, worst_section
from loupe.runs.folder import RunFolder
from loupe.types import Estimate, Result

#: Samples shown with their texts, and characters of each text.
EXAMPLES, LONGEST = 3, 400
#: Runs, measures and regressions listed.
_LISTED = 40
#: A comment on GitHub has at most 65,536 characters.
_MOST = 60_000
#: Characters of an excerpt that stand before the first difference.
_BEFORE = 80


def comparison_markdown(compared: Compared) -> str:
    """Every run against the baseline, what got worse with samples, and how the numbers were made."""
    base = next(row for row in compared.runs if row.run == compared.baseline)
    parts = [f"## {code(f'{compared.benchmark}@{compared.version}')}: against {code(base.name)}"]
    if compared.warning:
        parts.append(f"> **{code(compared.warning)}**")
    if compared.regressions is not None:
        parts.append(_outcome(compared))
    if compared.headline_note:
        parts.append(code(compared.headline_note, longest=LONGEST))
    if compared.verdict:
        parts.append(code(compared.verdict, longest=LONGEST))
    parts += [code(line, longest=LONGEST) for line in (*compared.notes, compared.part, compared.accepted) if line]
    for pair in compared.pairs[:_LISTED]:
        parts += _pair(compared, pair, base.name)
    parts += [code(f"The runs differ in {part}: {' | '.join(values)}") for part, values in compared.differing.items()]
    parts.append(folded("Signatures", "\n".join(one_line(row.signature, 1000) for row in compared.runs[:_LISTED])))
    return _joined(parts)


def _outcome(compared: Compared) -> str:
    lost = compared.regressions or []
    untested = [pair.name for pair in compared.pairs if cannot_tell(compared, pair)]
    if not lost and untested:
        few = f"too few samples to tell whether {compared.headline} got worse in {listed(untested[:_LISTED])}"
        return f"⚠️ **Not tested:** {code(few)}"
    if not lost:
        return "✅ **No regression.**"
    lines = [
        f"- {' '.join(map(code, filter(None, [one.name, one.measure])))}: {code(one.why, longest=LONGEST)}"
        for one in lost[:_LISTED]
    ]
    return "\n".join([f"❌ **{counted(len(lost), 'regression')}.**", "", *lines])


def _pair(compared: Compared, pair: Pair, base: str) -> Iterator[str]:
    rows = []
    for name, found in list(pair.measures.items())[:_LISTED]:
        if (found.value_a is None and found.value_b is None) or name in compared.twice:
            continue
        unit = compared.units.get(name, "fraction")
        values = [
            format_value(value, unit) if value is not None else f"– {code(compared.why_nothing(run, name))}"
            for run, value in ((pair.run, found.value_a), (compared.baseline, found.value_b))
        ]
        cells = difference_cells(found, unit, higher_is_better=compared.directions.get(name, True))
        rows.append((code(name), *values, *cells))
    yield f"### {code(pair.name)} on what both have read: {counted(pair.samples, 'sample')}"
    yield pipe_table(("measure", code(pair.name), code(base), *DIFFERENCE_HEADER), rows)
    worse = pair.moved.worse[:EXAMPLES]
    if not worse:
        return
    unit = compared.units.get(pair.moved.measure, "fraction")
    ids = [one.sample for one in worse]
    new, old = RunFolder.open(Path(pair.run)), RunFolder.open(Path(compared.baseline))
    references, now, then = references_of(new, ids), answers_of(new, ids), answers_of(old, ids)
    yield f"**What got worse most**, by {code(pair.moved.measure)}:"
    for one in worse:
        texts = {"reference": references.get(one.sample), base: then.get(one.sample), pair.name: now.get(one.sample)}
        moved = f"{format_value(one.value_before, unit)} → {format_value(one.value, unit)}"
        heading = f"{code(one.sample)}: {moved}, which adds {added(one, unit)} to the difference"
        yield from example(heading, texts)


def runs_markdown(runs: Sequence[tuple[RunFolder, Result]], measure: str = "") -> str:
    """Write every run with its headline, then its measures, what failed, and how the numbers were made.

    `measure` is the headline that was asked for ("": the one that each run has).
    """
    rows = []
    for folder, result in runs[:_LISTED]:
        headline = headline_of([result], measure).measure
        found, unit = result.measures.get(headline, Estimate(value=None)), _unit(result, headline)
        failed = failed_cell(failed_count(result), result.total, result.outcomes.get("refused", 0))
        rows.append(
            (
                code(marked(result.engine, result)),
                code(f"{result.benchmark}@{result.version}"),
                f"{code(headline)} {format_estimate(found, unit)}",
                format_range(found.low, found.high, unit),
                failed,
                code(str(folder.path)),
            )
        )
    parts = ["## Loupe", pipe_table(("engine", "benchmark", "headline", "95 % interval", "failed", "run"), rows)]
    for folder, result in runs[:_LISTED]:
        parts += _run(folder, result, measure)
    parts.append(folded("Signatures", "\n".join(one_line(result.signature, 1000) for _, result in runs[:_LISTED])))
    return _joined(parts)


def _run(folder: RunFolder, result: Result, measure: str) -> Iterator[str]:
    yield f"### {code(marked(result.engine, result))} on {code(result.benchmark)}"
    headline = headline_of([result], measure)
    if headline.note:
        yield code(headline.note, longest=LONGEST)
    rows = [
        (
            code(name),
            format_estimate(found, _unit(result, name))
            if found.value is not None
            else f"– {code(why_nothing(result, name))}",
            format_range(found.low, found.high, _unit(result, name)),
            f"{found.n:,}",
        )
        for name, found in list(result.measures.items())[:_LISTED]
    ]
    yield pipe_table(("measure", "value", "95 % interval", "n"), rows)
    for warning in [*result.warnings[:_LISTED], *notes_of(result)]:
        yield f"> {code(warning, longest=LONGEST)}"
    if result.failures:
        yield f"**{len(result.failures):,} failed**, the first of them:"
        lines = [
            f"- {code(one.sample)} ({code(one.outcome)}): {code(one.error or 'no answer', longest=LONGEST)}"
            for one in result.failures[:EXAMPLES]
        ]
        yield "\n".join(lines)
    yield from _worst(folder, headline.measure)


def _worst(folder: RunFolder, measure: str) -> Iterator[str]:
    """The samples that cost most, with reference and answer; none where nothing is lost, or nobody can tell."""
    from loupe.benchmarks.registry import benchmark_of_run

    try:
        section = worst_section(benchmark_of_run(folder.info.benchmark), folder.scores(), measure)
    except LoupeError:
        return
    if section is None:
        return
    ids = [str(row[0]) for row in section.rows[:EXAMPLES]]
    costs = [str(row[1]) for row in section.rows[:EXAMPLES]]
    references, answers = references_of(folder, ids), answers_of(folder, ids)
    yield "**What cost most:**"
    for ident, cost in zip(ids, costs, strict=True):
        texts = {"reference": references.get(ident), "answer": answers.get(ident)}
        yield from example(f"{code(ident)}: {code(cost)}", texts)


def _joined(parts: Sequence[str]) -> str:
    """Paragraphs as one text, as many as a comment can have."""
    sizes = accumulate(len(part) + 2 for part in parts)
    kept = [part for part, size in zip(parts, sizes, strict=True) if size <= _MOST]
    left = ["_The rest is left out here; `loupe report` shows all._"] if len(kept) < len(parts) else []
    return "\n\n".join([*kept, *left]) + "\n"


def _unit(result: Result, measure: str) -> str:
    return result.units.get(measure, "fraction")


def example(title: str, texts: dict[str, str | None]) -> Iterator[str]:
    """A sample with excerpts of its texts from shortly before where they first differ; None: the text is not here."""
    there = [text for text in texts.values() if text is not None]
    start = max(0, min((_common(there[0], other) for other in there[1:]), default=0) - _BEFORE)
    yield title
    for name, text in texts.items():
        if text is not None:
            yield f"{code(name)}:\n\n{block(_excerpt(text, start))}"


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike; whole texts that are alike differ nowhere."""
    if one == other:
        return len(one) if len(one) > LONGEST else _BEFORE
    shorter = min(len(one), len(other))
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), shorter)


def _excerpt(text: str, start: int) -> str:
    cut = text[start : start + LONGEST]
    return ("…" if start and cut else "") + cut + ("…" if start + LONGEST < len(text) else "")


def block(text: str) -> str:
    """A text as a code block; its fence is longer than any that stands in it."""
    shown = printable(text.replace("\r\n", "\n").replace("\r", "\n")) or "(nothing)"
    fence = "`" * max(3, max(map(len, re.findall("`+", shown)), default=0) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def folded(title: str, text: str) -> str:
    """A code block that opens with a click."""
    return f"<details><summary>{title}</summary>\n\n{block(text)}\n\n</details>"
