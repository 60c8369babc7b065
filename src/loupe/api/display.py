"""Runs, samples, comparisons and lists in a notebook: small tables, light and dark.

Colours are those of JupyterLab's theme where it tells them, else those of the reader's system. All texts are escaped.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any

from loupe.errors import LoupeError
from loupe.results.control_characters import printable
from loupe.results.headline import value_or_reason
from loupe.results.scored_here import marked
from loupe.results.sections import format_range, format_value, notes_of
from loupe.results.visible_differences import DIFFERENCE_HEADER, difference_cells

if TYPE_CHECKING:
    from loupe.api.comparing import Comparison
    from loupe.api.listing import Listing
    from loupe.api.runs import Run, Samples, ScoredSample

#: The longer side of a page's picture, in pixels.
_PICTURE = 360
#: Longer texts and lists are cut off, with a word about it.
_MOST_TEXT, _MOST_ROWS = 4000, 20

_STYLE = """<style>
.loupe{--ink:#1f2328;--soft:#59636e;--line:#d1d9e0;--bad:#b3261e;--good:#1a7f37;--add:#dafbe1;--gone:#ffebe9;
 color:var(--jp-ui-font-color1,var(--ink));font:13px/1.5 system-ui,sans-serif;max-width:62rem}
@media (prefers-color-scheme:dark){.loupe{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--bad:#ff7b72;--good:#56d364;
 --add:#12401f;--gone:#5a1d1b}}
body[data-jp-theme-light="true"] .loupe{--soft:#59636e;--bad:#b3261e;--good:#1a7f37;--add:#dafbe1;--gone:#ffebe9}
body[data-jp-theme-light="false"] .loupe{--soft:#a8b1bb;--bad:#ff7b72;--good:#56d364;--add:#12401f;--gone:#5a1d1b}
.loupe .head{font-size:15px;font-weight:600;margin:0 0 4px}
.loupe table{display:block;overflow-x:auto;border-collapse:collapse;margin:6px 0;font-size:13px;background:none}
.loupe th,.loupe td{text-align:left!important;vertical-align:top;padding:3px 14px 3px 0;border:0;background:none;
 border-bottom:1px solid var(--jp-border-color2,var(--line));color:inherit}
.loupe td:first-child{overflow-wrap:normal;white-space:nowrap}
.loupe th{font-weight:600;color:var(--soft)}
.loupe td.n,.loupe th.n{text-align:right!important;font-variant-numeric:tabular-nums;white-space:nowrap}
.loupe .soft{color:var(--soft)}.loupe .bad{color:var(--bad)}.loupe .good{color:var(--good)}
.loupe .small{font-size:11.5px;overflow-wrap:anywhere}
.loupe .two{display:flex;gap:20px;flex-wrap:wrap;align-items:flex-start}.loupe .two>div{flex:1 1 22rem;min-width:0}
.loupe .two>.page{flex:0 1 360px}
.loupe img{max-width:min(360px,100%);border:1px solid var(--line);background:#fff;margin:0}
.loupe pre{white-space:pre-wrap;overflow-wrap:anywhere;word-break:normal!important;margin:4px 0;font-size:12.5px;
 max-height:24em;overflow:auto;color:inherit;background:none;padding:0;border:0}
.loupe ins{background:var(--add);text-decoration:none}.loupe del{background:var(--gone)}
</style>"""


def run_html(run: Run) -> str:
    """The measures of a run with their intervals, what failed, and how the numbers were made."""
    result = run.result
    head = marked(f"{run.engine} on {run.benchmark}@{result.version.partition('+')[0]}", result)
    rows = []
    for name, one in result.measures.items():
        if not one.n and name not in (run.headline, result.headline):
            continue  # a measure of other kinds of pages
        unit = result.units.get(name, "fraction")
        direction = "higher is better" if result.directions.get(name, True) else "lower is better"
        shown = _strong(name) if name == run.headline else _text(name)
        interval = _text(format_range(one.low, one.high, unit) or "–")
        rows.append([shown, _text(value_or_reason(result, name)), interval, f"{one.n:,}", _soft(direction)])
    parts = [_head(head), _table(["measure", "value", "95 % interval", "n", ""], rows, numbers={1, 2, 3})]
    failed = len(result.failures)
    parts += [_line(run.headline_note, "soft")] if run.headline_note else []
    parts.append(_line(f"{result.total:,} samples, {failed:,} failed", "bad" if failed else "soft"))
    parts += [_line(warning, "bad") for warning in [*result.warnings[:5], *notes_of(result)]]
    parts.append(_line(run.signature, "soft small"))
    return _whole(parts)


def samples_html(samples: Samples) -> str:
    """The first samples with their scores."""
    first = samples[:_MOST_ROWS]
    count = Counter(name for sample in first for name in sample.scores)
    # A measure of one kind of page would be an empty column for all others.
    names = [name for name in count if 2 * count[name] >= len(first)]
    rows = [
        [
            _text(sample.id),
            _outcome(sample.outcome),
            *(f"{sample.scores[name]:.3f}" if name in sample.scores else "–" for name in names),
        ]
        for sample in first
    ]
    table = _table(["sample", "outcome", *names], rows, numbers=set(range(2, 2 + len(names))))
    return _whole([table, *_rest(len(samples), "samples")])


def sample_html(sample: ScoredSample) -> str:
    """A sample: its page, and what was read, marked where it differs from what should have been."""
    scores = [[_text(name), f"{value:.4f}"] for name, value in sample.scores.items()]
    page = _picture(sample)
    reading = [_table(["measure", "value"], scores, numbers={1}), _marked(sample)]
    if sample.error:
        reading.append(_line(sample.error, "bad"))
    left = f'<div class="page">{page}</div>' if page else ""
    head = f"{_head(sample.id)}<div>{_outcome(sample.outcome)}</div>"
    return _whole([head, f'<div class="two">{left}<div>{"".join(reading)}</div></div>'])


def comparison_html(found: Comparison) -> str:
    """The outcome in a sentence, and every measure with its difference."""
    details, rows = found.details, []
    for name, one in found.differences.items():
        if one.value_a is None and one.value_b is None:
            continue
        unit = details.units.get(name, "fraction")
        better = details.directions.get(name, True)
        *cells, said = difference_cells(one, unit, higher_is_better=better)
        tone = {"better": "good", "worse": "bad"}.get(said, "soft")
        values = [
            format_value(value, unit) + (f" ({details.why_nothing(side, name)})" if value is None else "")
            for side, value in ((found.details.pairs[-1].run, one.value_a), (details.baseline, one.value_b))
        ]
        shown = _strong(name) if name == found.headline else _text(name)
        rows.append([shown, *map(_text, (*values, *cells)), f'<span class="{tone}">{_text(said)}</span>'])
    head = ["measure", found.name, found.baseline, *DIFFERENCE_HEADER]
    tone = {"better": "good", "worse": "bad"}.get(found.outcome, "")
    note = [_line(found.headline_note, "soft")] if found.headline_note else []
    note += [_line(said, "bad") for said in (details.warning, *details.notes, details.part, details.accepted) if said]
    sentence = f'<div class="head {tone}">{_text(found.sentence)}</div>'
    return _whole([sentence, *note, _table(head, rows, numbers={1, 2, 3, 4, 5})])


def listing_html(listing: Listing[Any]) -> str:
    """A list of benchmarks or engines as a table."""
    if not listing:
        return _whole([_line("nothing", "soft")])
    names = [each.name for each in fields(listing[0]) if each.name not in ("paper", "measures")]
    rows = [[_text(_plain(getattr(one, name))) for name in names] for one in listing]
    return _whole([_table(names, rows, numbers={names.index("samples")} if "samples" in names else set())])


def entry_html(entry: Any) -> str:
    """One benchmark or engine, a line for each thing that is known of it."""
    pairs = [(each.name, _plain(getattr(entry, each.name))) for each in fields(entry) if each.name != "title"]
    rows = [[_soft(name), _text(value)] for name, value in pairs if value]
    return _whole([_head(entry.title or entry.id), _table([], rows)])


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def _picture(sample: ScoredSample) -> str:
    """The page as a picture in the text itself; "" if it cannot be shown."""
    from loupe.data.pages import thumbnail

    try:
        if not sample.sample.images:
            return ""
        image = thumbnail(sample.sample.images[0], _PICTURE)
    except LoupeError as error:
        return _line(error.message, "soft")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{_text(sample.id)}" src="data:image/png;base64,{data}">'


def _marked(sample: ScoredSample) -> str:
    from loupe.report.marked_text import pieces

    try:
        reference = sample.reference
    except LoupeError as error:
        return _line(error.message, "soft") + _pre(_text(_cut(sample.text)))
    if not reference:
        return _pre(_text(_cut(sample.text)))
    tags = {"missing": "del", "added": "ins"}
    shown = [(_text(text), tags.get(kind, "")) for text, kind in pieces(_cut(sample.text), _cut(reference))]
    legend = _line("marked: missing in the answer (red), not in the reference (green)", "soft small")
    return legend + _pre("".join(f"<{tag}>{text}</{tag}>" if tag else text for text, tag in shown))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + " …"


def _rest(count: int, what: str) -> list[str]:
    return [_line(f"the first {_MOST_ROWS} of {count:,} {what}", "soft")] if count > _MOST_ROWS else []


def _outcome(outcome: str) -> str:
    return f'<span class="{"good" if outcome == "ok" else "bad"}">{_text(outcome)}</span>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: set[int] | None = None) -> str:
    """A table of cells that are HTML already; `numbers` are columns that stand on the right."""

    def cells(row: Sequence[str], tag: str) -> str:
        kinds = [' class="n"' if place in (numbers or ()) else "" for place in range(len(row))]
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    head = f"<thead><tr>{cells([_text(each) for each in header], 'th')}</tr></thead>" if any(header) else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    return escape(printable(text))


def _pre(html: str) -> str:
    return f"<pre>{html}</pre>"


def _head(text: str) -> str:
    return f'<div class="head">{_text(text)}</div>'


def _line(text: str, tone: str) -> str:
    return f'<div class="{tone}">{_text(text)}</div>'


def _soft(text: str) -> str:
    return f'<span class="soft">{_text(text)}</span>'


def _strong(text: str) -> str:
    return f"<b>{_text(text)}</b>"


def _whole(parts: Iterable[str]) -> str:
    return f'{_STYLE}<div class="loupe">{"".join(parts)}</div>'
