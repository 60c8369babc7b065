"""`loupe report`: runs as one self-contained HTML file that opens from file:// without a network (docs/report.md).

The file carries a Content-Security-Policy that admits its own style and script by hash and nothing else. Samples are
streamed through worker processes to disk; only what the grid shows of each one stays in memory.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from loupe import __version__
from loupe.benchmarks.published import published_rows
from loupe.errors import UsageError, cannot_write, is_refusal
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.hooks import called
from loupe.quantities import counted
from loupe.report import leaderboard
from loupe.report.collect import SampledGroup, collect, image_bytes, sample_jobs
from loupe.report.samples import compressed, pack_all
from loupe.report.tradeoffs import FULL, NARROW, WIDTH, Tradeoff, heading, left_over, tradeoff_svg, tradeoffs
from loupe.results import losses
from loupe.results.changed_references import CHANGED, is_other_truth
from loupe.results.class_tables import classes_of, truth_states
from loupe.results.control_characters import PAGE_LISTS
from loupe.results.group_titles import shown_version
from loupe.results.groups import Entrant, Group
from loupe.results.interval_words import interval_caption
from loupe.results.partial_runs import left_out_sentences
from loupe.results.published import leaderboard_rows, source_numbers
from loupe.results.ranking import how_ranked, ranks_of, standings_of, visible_to_best
from loupe.results.sections import carried_by_few, part_of_published
from loupe.results.unverified import accepted_drafts, review_of, unverified_warning
from loupe.results.verdict import Contender, Verdict, verdict
from loupe.stats.ranks import Standings
from loupe.types import Result

JsonObject: TypeAlias = dict[str, Any]

_HERE = Path(__file__).parent
_COMMENT = re.compile(r"^[ \t]*(?://|/\*\*|\*).*\n", re.MULTILINE)
_SCRIPTS = ("data.js", "stored.js", "visible.js", "text.js", "diff.js", "moved.js", "grid.js", "sample.js")
#: Only in reports that explain a score, or draw where engines saw the parts of a page.
_OVERLAY, _MATCH_SCRIPTS = "overlay.js", ("tables.js", "formulas.js", "match.js")
#: Where the samples go. No text of a run can contain it: Jinja escapes `<`, and JSON is written without it.
PAYLOADS = "<!-- samples -->"
#: JSON inside a script element must not be able to end it; U+2028 and U+2029 end lines in older scripts.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def page(groups: Sequence[SampledGroup], shapes: Sequence[str], *, embedded: bool) -> str:
    """The whole page, with `PAYLOADS` where the samples belong."""
    explained = any(group.benchmark is not None and group.benchmark.explain is not None for group in groups)
    tested = any(group.facts.rows for group in groups)
    laid_out = any(group.has_layouts for group in groups)
    more = ["facts.css"] if tested else []
    on_pages = ["match.css"] if explained or laid_out else []
    styles = "".join(_static(name) for name in ("report.css", *on_pages, *more))
    fielded = any(group.benchmark is not None and group.benchmark.fields is not None for group in groups)
    scripts = script(explained=explained, tested=tested, fielded=fielded, laid_out=laid_out)
    return (
        environment()
        .get_template("report.html")
        .render(
            title=groups[0].title if len(groups) == 1 else "Benchmark report",
            byline=_byline(groups),
            groups=[group_context(group) for group in groups],
            legend=legend(),
            index=Markup(inline_json(index(groups, shapes))),
            styles=Markup(styles),
            scripts=Markup(scripts),
            payloads=Markup(PAYLOADS),
            policy=policy(styles, scripts),
            version=__version__,
            made=f"{datetime.now(UTC):%-d %B %Y}",
            embedded=embedded,
            tested=tested,
        )
    )


def environment(*folders: Path) -> Environment:
    """The templates, and those of further folders; everything put into them is escaped unless it is Markup."""
    found = Environment(
        loader=FileSystemLoader([*folders, _HERE / "templates"]),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["breakable"] = _breakable
    found.globals |= {**PAGE_LISTS, "sample_address": _sample_address, "row_address": None, "parts": ()}
    return found


def _breakable(name: str) -> Markup:
    """A name that lines may break at its joints, not in the middle of a word; escaped."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.:@+])(?=\w)", name))


def _sample_address(group: JsonObject, sample: str, groups: Sequence[JsonObject]) -> str:
    """The place of a sample inside the file."""
    benchmark = f"&b={quote(group['key'], safe='')}" if len(groups) > 1 else ""
    return f"#s={quote(sample.encode('utf-8', 'replace'), safe='')}{benchmark}"


def script(*, explained: bool = False, tested: bool = False, fielded: bool = False, laid_out: bool = False) -> str:
    """The page's script: its files in order, in one function, so that they share nothing with the page."""
    names = (
        *_SCRIPTS,
        *((_OVERLAY,) if explained or laid_out else ()),
        *(_MATCH_SCRIPTS if explained else ()),
        *(("layout.js",) if laid_out else ()),
        *(("facts.js",) if tested else ()),
        *(("fields.js",) if fielded else ()),
        "app.js",
        *(("fact_list.js",) if tested else ()),
    )
    # Comments are for those who read the files here; in the page they would be a twentieth of it.
    return '(() => {\n"use strict";\n' + "\n".join(_COMMENT.sub("", _static(name)) for name in names) + "})();\n"


def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


def policy(styles: str, scripts: str) -> str:
    """The Content-Security-Policy: this style and this script, images from data and files, and no network at all."""
    return (
        f"default-src 'none'; img-src data: file: 'self'; style-src {_hash(styles)}; script-src {_hash(scripts)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def inline_json(value: object) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def index(groups: Sequence[SampledGroup], shapes: Sequence[str]) -> JsonObject:
    """The index of all samples for the grid."""
    return {
        "steps": leaderboard.STEPS,
        "groups": [
            {
                "key": group.key,
                "title": group.title,
                "note": " ".join(filter(None, (group.note, group.part))),
                "shape": shape,
                "headline": group.headline,
                "engines": [entrant.label for entrant in group.entrants],
                "measures": shown_measures(group),
                "samples": group.summary,
            }
            for group, shape in zip(groups, shapes, strict=True)
        ],
    }


def shown_measures(group: Group) -> list[JsonObject]:
    """The measures as the grid needs them, here and in `loupe view`."""
    return [
        {
            "name": measure.name,
            "title": measure.title or measure.name,
            "unit": measure.unit,
            "higher": measure.higher_is_better,
        }
        for measure in group.measures
    ]


def group_context(group: SampledGroup) -> JsonObject:
    """The context of one group for the templates."""
    failed, more = leaderboard.failures(group)
    compared = standings_of(group)
    ranks = ranks_of(group, compared)
    decided = _verdict(group, compared)
    rows = leaderboard.rows(group, ranks, winner=int(decided.winner or -1))
    return {
        "key": group.key,
        "title": group.title,
        "version": shown_version(group.entrants[0].run.info.version),
        "note": " ".join(filter(None, (group.note or group.facts.problem, group.part))),
        "changed": group.changed,
        "unverified": unverified_warning(group.results),
        "part": _part(group),
        "verdict": decided.sentence,
        "accepted": accepted_drafts(group.results),
        "warnings": [
            {"engine": entrant.label, "text": warning.removeprefix(f"{entrant.label}: ")}
            for entrant in group.entrants
            for warning in _warnings(group, entrant.result)
        ],
        "engines": [entrant.label for entrant in group.entrants],
        "columns": leaderboard.columns(group)[: leaderboard.COLUMN_LIMIT],
        "measures": leaderboard.measure_rows(group),
        "axis": leaderboard.headline_axis(group),
        "rows": rows,
        "has_seconds": any(row.seconds for row in rows),
        "published": leaderboard_rows(group.published, leaderboard.columns(group)[: leaderboard.COLUMN_LIMIT]),
        "sources": source_numbers(group.published),
        "caption": _caption(group, compared),
        # On drafts more documents would show no better who is right.
        "visible": None if unverified_warning(group.results) else visible_to_best(group, compared),
        "classes": classes_of([(entrant.label, entrant.result) for entrant in group.entrants if entrant.result]),
        "pictures": partial(_pictures_added, group),
        "tradeoffs": _pictures(found := tradeoffs(group)),
        "tradeoffs_title": heading(found),
        "slices": (slices := leaderboard.slice_tables(group)),
        "slices_margin": any(cell.margin[:1] == "±" for table in slices for row in table.rows for cell in row[3]),
        "beside": leaderboard.beside(group),
        "flags": group.flags.rows(len(group.entrants)),
        "headline": next((m.title or m.name for m in group.measures if m.name == group.headline), "headline"),
        "losses": losses.loss_tables(group),
        "official": losses.official_table([(entrant.label, entrant.result) for entrant in group.entrants]),
        "failures": failed,
        "more_failures": more,
        "failed_are": _failed_are(group),
        "signatures": [_signature(entrant) for entrant in group.entrants],
    }


def _verdict(group: Group, compared: Standings | None) -> Verdict:
    """The winner, how sure that is, and what to do next."""
    headline = next((measure for measure in group.measures if measure.name == group.headline), None)
    taking_part = [
        Contender(str(place), entrant.label, entrant.result)
        for place, entrant in enumerate(group.entrants)
        if entrant.result and headline and headline.name not in entrant.left_out
    ]
    return verdict(
        taking_part,
        headline,
        compared,
        apart=any(entrant.left_out for entrant in group.entrants),
        review=review_of(group.entrants[0].run.info),
    )


def _pictures_added(
    group: Group, address: Callable[..., str], context: JsonObject, groups: Sequence[JsonObject]
) -> Markup:
    """Return what features and other packages draw of a group; `address` is that of samples in templates."""
    return Markup("\n").join(called("report_pictures", group, lambda sample: address(context, sample, groups)))


def _pictures(found: Sequence[Tradeoff]) -> list[tuple[str, Markup, str]]:
    """Every trade-off as (for which screen, picture, what it cannot show); one alone has the page's width."""
    widths = (("wide-screen", FULL if len(found) == 1 else WIDTH), ("narrow-screen", NARROW))
    sized = [(kind, replace(each, width=width)) for each in found for kind, width in widths]
    return [(kind, Markup(tradeoff_svg(each)), " ".join(left_over(each))) for kind, each in sized]


def _warnings(group: SampledGroup, result: Result | None) -> list[str]:
    """Return what must be known beside the numbers of one run."""
    if result is None:
        return ["not scored yet"]
    return [*group.flags.warnings(result), *filter(None, [carried_by_few(result)])]


def _part(group: Group) -> str:
    """That none of the runs is over the whole of the published set."""
    largest = max(group.results, key=lambda result: result.total, default=None)
    part = part_of_published(largest) if largest else ""
    return part[:1].upper() + part[1:] + "." if part else ""


def _failed_are(group: Group) -> str:
    """The weight of failed samples in the numbers, in words."""
    if any(result.failed_are != "empty" for result in group.results):
        return "The official numbers leave out failed samples; the official figures also count them as empty answers."
    return "Failed samples score as empty answers; none are left out."


def _byline(groups: Sequence[SampledGroup]) -> str:
    """Engines and samples in one line."""
    engines = len({entrant.label for group in groups for entrant in group.entrants})
    samples = sum(len(group.summary) for group in groups)
    said = [counted(engines, "engine"), counted(samples, "sample")]
    said += [f"version {shown_version(groups[0].entrants[0].run.info.version)}"] if len(groups) == 1 else []
    return " · ".join(said)


def _caption(group: Group, compared: Standings | None) -> str:
    """The way to read the leaderboard."""
    columns = leaderboard.columns(group)[: leaderboard.COLUMN_LIMIT]
    intervals = interval_caption(group.results, columns, bars=group.headline)
    shown = [said for said in (group.headline_note, intervals, how_ranked(group, compared)) if said]
    shown += left_out_sentences([(entrant.label, entrant.left_out) for entrant in group.entrants], group.measures)
    states = next((found for result in group.results if (found := truth_states(result))), "")
    shown += [f"Samples by ground truth: {states}."] if states else []
    return " ".join(shown)


def _signature(entrant: Entrant) -> tuple[str, str, str]:
    info = entrant.run.info
    facts = [f"{key} {value}" for key, value in info.facts.items()]
    facts += [info.created.replace("T", " ").removesuffix("+00:00") + " UTC"] if info.created else []
    return entrant.label, entrant.result.signature if entrant.result else info.signature, " · ".join(facts)


def legend() -> list[str]:
    """The meaning of the colour steps."""
    percent = [f"{100 * lower:g}" for lower in leaderboard.STEPS]
    return [f"< {percent[1]}", *(f"≥ {lower}" for lower in percent[1:])]


#: Reports whose page images weigh no more than this in all carry them, so that a small report can be sent to somebody.
CARRIED_IMAGES = 4_000_000
#: Widest first; the shape of the cards follows the middle one of the pages' ratios of width to height.
_SHAPES = ((2.5, "strip"), (1.15, "landscape"), (0.87, "square"), (0.0, "portrait"))


def write_report(
    runs: Sequence[Path],
    output: Path,
    *,
    embed: bool = False,
    carry: int = CARRIED_IMAGES,
    published: bool = False,
    measure: str = "",
) -> None:
    """Write the report of these runs to `output`, whole or not at all. `embed` puts the full page images in;
    without it they are linked, unless all of them together weigh at most `carry` bytes. `published` adds to each
    leaderboard what others have published on the benchmark. `measure` ranks the runs of each benchmark that has it.

    Raises RunError for a path without a run, UsageError for an output that cannot be one, WriteError for a full disk.
    """
    if not runs:
        raise UsageError("no run given", hint="run: loupe report runs/ENGINE/BENCHMARK -o report.html")
    groups = collect(runs, measure)
    for group in groups:
        info = group.entrants[0].run.info
        group.published = published_rows(info.benchmark_id, info.version) if published else []
        if group.benchmark is not None and group.results and is_other_truth(group.benchmark, info):
            group.changed = CHANGED
    write_groups(groups, output, embed=embed, carry=carry)


def write_groups(
    groups: Sequence[SampledGroup], output: Path, *, embed: bool = False, carry: int = CARRIED_IMAGES
) -> None:
    """The same for runs that were grouped already."""
    embed = embed or sum(image_bytes(group, carry) for group in groups) <= carry
    folder = real_path(output.absolute().parent)
    try:
        Folder(folder).check(output.name)
        with Folder(folder).draft(output.name) as draft, tempfile.TemporaryFile(dir=folder) as samples:
            shapes = _pack(groups, samples, folder=folder, embed=embed)
            before, after = page(groups, shapes, embedded=embed).split(PAYLOADS)
            draft.file.write(before.encode())
            samples.seek(0)
            shutil.copyfileobj(samples, draft.file)
            draft.file.write(after.encode())
            draft.replace()
    except OSError as error:
        if is_refusal(error):
            raise cannot_write(output, error) from None
        if error.errno == errno.ENAMETOOLONG:
            raise
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None


def _pack(groups: Sequence[SampledGroup], file: IO[bytes], *, folder: Path, embed: bool) -> list[str]:
    """Write all samples to `file` as UTF-8; returns the shape of each group's cards."""
    number = 0
    shapes: list[str] = []
    for group in groups:
        ratios = []
        total = max(len(entrant.predictions) for entrant in group.entrants)
        for packed in pack_all(sample_jobs(group, folder=folder, embed=embed), total=total):
            file.write(f'<script type="text/plain" id="t{number}">{packed.thumbnail.data}</script>\n'.encode())
            file.write(f'<script type="text/plain" id="d{number}">{packed.payload}</script>\n'.encode())
            group.has_layouts = group.has_layouts or packed.has_layout
            ratios += [packed.thumbnail.ratio] if packed.thumbnail.ratio else []
            number += 1
        for key, payload in group.formulas.blocks():
            file.write(f'<script type="text/plain" id="f{key}">{payload}</script>\n'.encode())
        if group.formulas.runs:
            summary = compressed(group.formulas.summary())
            file.write(f'<script type="text/plain" id="formulas-{len(shapes)}">{summary}</script>\n'.encode())
        if group.facts.rows:
            tests = compressed(group.facts.packed())
            file.write(f'<script type="text/plain" id="facts-{len(shapes)}">{tests}</script>\n'.encode())
        middle = sorted(ratios)[len(ratios) // 2] if ratios else 0.8
        shapes.append(next(name for ratio, name in _SHAPES if middle >= ratio))
    return shapes
