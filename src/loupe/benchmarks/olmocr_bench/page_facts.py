"""Check all tests of a page on one answer to it, kind by kind.

Protocol: docs/protocols/olmocr_bench.md#present-and-absent, #order, #matching-cells, #math-decision, #format,
#footnotes and #baseline. All searches are linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.equations import render_and_match
from loupe.benchmarks.olmocr_bench.page_text import PageText, ReadTable
from loupe.benchmarks.olmocr_bench.records import (
    PASSED,
    BaselineRule,
    FootnoteRule,
    FormatRule,
    MathRule,
    OrderRule,
    Outcome,
    PageTest,
    TableRule,
    TextRule,
    failed,
    normalize,
    threshold_of,
)
from loupe.benchmarks.shared.near_matches import find_near_matches
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError


def check_page(markdown: str, tests: Sequence[PageTest]) -> list[Outcome]:
    """The outcome of each test. Raises MissingToolError where an equation cannot be rendered."""
    page = PageText(markdown)
    return [_check_or_fail_like_official(page, test) for test in tests]


def check_test(page: PageText, test: PageTest) -> Outcome:
    """The outcome of one test. Raises TableReadError or TypeError where upstream raises in running it."""
    match test.rule:
        case TextRule():
            return check_text(page, test.rule, test.max_diffs)
        case OrderRule():
            return check_order(page, test.rule, test.max_diffs)
        case TableRule():
            return check_table(page, test.rule, test.max_diffs)
        case MathRule():
            return check_math(page, test.rule)
        case BaselineRule():
            return check_baseline(page.markdown, test.rule)
        case FormatRule():
            return check_format(page.markdown, test.rule, test.max_diffs)
        case FootnoteRule():
            return check_footnote(page.markdown, test.rule, test.max_diffs)


def _check_or_fail_like_official(page: PageText, test: PageTest) -> Outcome:
    """A test that raises has not passed; upstream then voids the whole candidate, see `missing`.

    Protocol: docs/protocols/olmocr_bench.md#exceptions.
    """
    try:
        return check_test(page, test)
    except TableReadError as error:
        return failed("run_error", error=str(error))
    except TypeError as error:
        return failed("run_error", error=f"TypeError: {error}")


def check_text(page: PageText, rule: TextRule, max_diffs: int) -> Outcome:
    """Pass if the text is on the page, or for `absent` if it is not.

    A page that is shorter than the text counts as holding it if it is a part of the text
    (docs/protocols/olmocr_bench.md#short-predictions).
    """
    text = rule.text if rule.case_sensitive else rule.text.lower()
    where = cut(page.normalized if rule.case_sensitive else page.lowered, rule.first_n, rule.last_n)
    threshold = threshold_of(text, max_diffs)
    ratio = 1.0 if text in where else fuzz.partial_ratio(text, where) / 100.0
    if (ratio >= threshold) != rule.absent:
        return PASSED
    explanation = "absent_found" if rule.absent else "present_below_threshold"
    return failed(explanation, threshold=threshold, best_ratio=ratio, nearest=nearest(text, where))


def cut(text: str, first: int | None, last: int | None) -> str:
    """The first and last characters, joined without a seam; 0 sets no limit, and both parts may overlap."""
    if first and last:
        return text[:first] + text[-last:]
    if first:
        return text[:first]
    return text[-last:] if last else text


def nearest(text: str, where: str) -> str:
    """The part of a page that is most similar to a text."""
    found = fuzz.partial_ratio_alignment(text, where)
    return where[found.dest_start : found.dest_end] if found else ""


def check_order(page: PageText, rule: OrderRule, max_diffs: int) -> Outcome:
    """Pass if some occurrence of the one text starts before some occurrence of the other."""
    where = page.normalized
    before = find_near_matches(rule.before, where, max_diffs)
    if before is None:
        return _not_found("order_before_not_found", rule.before, where, max_diffs)
    after = find_near_matches(rule.after, where, max_diffs)
    if after is None:
        return _not_found("order_after_not_found", rule.after, where, max_diffs)
    if before.first < after.last:
        return PASSED
    return failed(
        "order_not_satisfied",
        before_at=before.first,
        after_at=after.last,
        nearest=where[after.last : after.last + len(rule.after)],
    )


def _not_found(explanation: str, text: str, where: str, max_diffs: int) -> Outcome:
    return failed(
        explanation,
        threshold=threshold_of(text, max_diffs),
        best_ratio=fuzz.partial_ratio(text, where) / 100.0,
        nearest=nearest(text, where),
    )


#: However many differences a test allows, texts must be as similar as this.
_LEAST = 0.5


def check_table(page: PageText, rule: TableRule, max_diffs: int) -> Outcome:
    """Pass on the first cell that is similar to the one looked for and has all relations.

    Tables beyond a limit of ours are not read, and fail a test that no other table passes. Raises TableReadError where
    upstream fails to read the tables, TypeError for a rule without a cell.
    """
    if rule.cell is None:
        raise TypeError("`cell` is null, which upstream accepts and then cannot search for")
    tables = [*([] if rule.ignore_markdown_tables else page.markdown_tables), *page.html_tables]
    kinds = [kind for kind in page.table_limits if kind == "HTML" or not rule.ignore_markdown_tables]
    unread = {"unread": "; ".join(f"{kind} tables: {page.table_limits[kind]}" for kind in kinds)} if kinds else {}
    if not tables:
        return failed("table_too_large" if unread else "table_none", **unread)
    threshold = max(_LEAST, threshold_of(rule.cell, max_diffs))
    similar = [table.similarities(rule.cell) for table in tables]
    candidates = [[index for index, ratio in enumerate(ratios) if ratio >= threshold] for ratios in similar]
    for table, chosen in zip(tables, candidates, strict=True):
        if chosen and any(_has_all(table, chosen, rule, max_diffs)):
            return PASSED
    number, best = _best(similar)
    figures: dict[str, float | int | str] = {
        "threshold": threshold,
        "best_ratio": similar[number][best],
        "nearest": tables[number].texts[best],
        "tables": len(tables),
        "table": number,
        "row": tables[number].table.cells[best].row,
        "col": tables[number].table.cells[best].col,
    }
    if unread:
        return failed("table_too_large", **figures, **unread)
    if not any(candidates):
        return failed("table_cell_not_found", **figures)
    return failed("table_relation_failed", **figures, **_wrong_relation(tables[number], best, rule, max_diffs))


def _has_all(table: ReadTable, candidates: Sequence[int], rule: TableRule, max_diffs: int) -> list[bool]:
    """For each candidate whether every relation holds."""
    holds = [True] * len(candidates)
    for relation, text in rule.relations:
        least = max(_LEAST, threshold_of(text, max_diffs))
        similar = [ratio >= least for ratio in table.similarities(text)]
        known = table.satisfying(relation, similar)
        for position, index in enumerate(candidates):
            if holds[position]:
                holds[position] = (
                    any(similar[other] for other in table.related(index, relation)) if known is None else known[index]
                )
    return holds


def _best(similar: Sequence[Sequence[float]]) -> tuple[int, int]:
    """The table and cell that are most similar, the first of equals."""
    places = ((number, index) for number, ratios in enumerate(similar) for index in range(len(ratios)))
    return max(places, key=lambda place: similar[place[0]][place[1]])


def _wrong_relation(table: ReadTable, index: int, rule: TableRule, max_diffs: int) -> dict[str, float | int | str]:
    """The first relation that the most similar cell has not, and what stands there instead."""
    for relation, text in rule.relations:
        found = [(fuzz.ratio(text, table.texts[other]) / 100.0, other) for other in table.related(index, relation)]
        ratio, other = max(found, default=(0.0, -1))
        least = max(_LEAST, threshold_of(text, max_diffs))
        if ratio < least:
            instead = table.texts[other] if other >= 0 else ""
            return {
                "relation": relation,
                "expected": text,
                "instead": instead,
                "relation_ratio": ratio,
                "relation_threshold": least,
            }
    return {}


def check_math(page: PageText, rule: MathRule) -> Outcome:
    """Pass on an equation that is the reference to the letter, else on one whose rendering contains that of it.

    Raises MissingToolError where equations would have to be rendered and cannot be.
    """
    equations = page.equations(ignore_dollars=rule.ignore_dollar_delimited)
    if rule.math in equations:
        return PASSED
    if not equations:
        return failed("math_no_match", equations=0)
    ranked = _ranked(page, rule)
    outcome = render_and_match(rule.math, ranked)
    if outcome.matched is not None:
        return PASSED
    ratio = fuzz.ratio(ranked[0], rule.math) / 100
    lost = {"not_compared": outcome.not_compared} if outcome.not_compared else {}
    return failed("math_no_match", equations=len(equations), best_ratio=ratio, nearest=ranked[0], **lost)


def questions(page: PageText, rules: Iterable[MathRule]) -> Iterator[tuple[str, list[str]]]:
    """The references that have to be rendered to be found, each with the equations that they are compared with."""
    for rule in rules:
        equations = page.equations(ignore_dollars=rule.ignore_dollar_delimited)
        if equations and rule.math not in equations:
            yield rule.math, _ranked(page, rule)


def _ranked(page: PageText, rule: MathRule) -> list[str]:
    """The different equations of the page, the likest first; of equally like ones the earlier."""
    equations = dict.fromkeys(page.equations(ignore_dollars=rule.ignore_dollar_delimited))
    return sorted(equations, key=lambda equation: -fuzz.ratio(equation, rule.math))


_HEADING = re.compile(r"^#{1,6}\s+(.+?)$", re.MULTILINE)
_LONE = {mark: re.compile(rf"(?<!{re.escape(mark)}){re.escape(mark)}(?!{re.escape(mark)})") for mark in "*_"}
#: Opening up to its `>` and closing tag of each style; an opening `<b` also begins `<br>` or `<body>`
#: (docs/protocols/olmocr_bench.md#format).
_TAGS = {
    "heading": (("<h[1-6]", "</h[1-6]>"),),
    "bold": (("<b", "</b>"), ("<strong", "</strong>")),
    "italic": (("<i", "</i>"), ("<em", "</em>")),
}


def check_format(markdown: str, rule: FormatRule, max_diffs: int) -> Outcome:
    """Pass if some text in the style is similar enough to the one looked for, or to a part of it."""
    text = rule.text if rule.case_sensitive else rule.text.lower()
    threshold = threshold_of(text, max_diffs)
    best, nearest = 0.0, ""
    texts = dict.fromkeys(texts_in_format(markdown, rule.format))
    for raw in texts:
        found = normalize(raw)
        found = found if rule.case_sensitive else found.lower()
        ratio = fuzz.partial_ratio(text, found) / 100.0
        if ratio >= threshold:
            return PASSED
        if ratio > best:
            best, nearest = ratio, found
    return failed("format_not_found", threshold=threshold, best_ratio=best, nearest=nearest, formatted_texts=len(texts))


def texts_in_format(markdown: str, style: str) -> Iterator[str]:
    """All texts in a style, as they stand there."""
    if style == "heading":
        yield from _HEADING.findall(markdown)
    elif style == "bold":
        yield from _between(markdown, "**")
        yield from _between(markdown, "__")
    else:
        yield from _between_lone(markdown, "*")
        yield from _between_lone(markdown, "_")
    for opening, closing in _TAGS[style]:
        yield from _between_tags(markdown, opening, closing)


def _between(text: str, mark: str) -> Iterator[str]:
    return iter(text.split(mark)[1:-1:2])


def _between_lone(text: str, mark: str) -> Iterator[str]:
    """Between marks that have no other of their kind beside them, two by two."""
    marks = [match.start() for match in _LONE[mark].finditer(text)]
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        yield text[start + 1 : end]


def _between_tags(text: str, opening: str, closing: str) -> Iterator[str]:
    opens, closes = re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE)
    position = 0
    while (start := opens.search(text, position)) is not None:
        inside = text.find(">", start.end()) + 1
        end = closes.search(text, inside) if inside else None
        if end is None:
            return
        yield text[inside : end.start()]
        position = end.end()


#: Characters of the answer looked at on either side of a marker.
_WINDOW = 200
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS = frozenset("0123456789")
_SUP = re.compile("<sup", re.IGNORECASE)


def check_footnote(markdown: str, rule: FootnoteRule, max_diffs: int) -> Outcome:
    """Pass if the marker occurs, some occurrence has the text before it, and some (maybe another) the text after it."""
    places = list(marker_places(markdown, rule.marker))
    if not places:
        return failed("footnote_marker_missing")
    missing: list[str] = []
    figures: dict[str, float | int | str] = {"markers": len(places)}
    sides = (
        ("before", rule.before, dict.fromkeys(markdown[max(0, start - _WINDOW) : start] for start, _ in places)),
        ("after", rule.after, dict.fromkeys(markdown[end : end + _WINDOW] for _, end in places)),
    )
    for side, text, windows in sides:
        if not text:
            continue
        threshold = threshold_of(text, max_diffs)
        best, nearest = _best_match(text, windows, side=side, enough=threshold)
        if best is None or best < threshold:
            missing.append(side)
            figures |= {f"{side}_threshold": threshold, f"{side}_ratio": best or 0.0, f"{side}_nearest": nearest}
    return failed(f"footnote_{'_and_'.join(missing)}_missing", **figures) if missing else PASSED


def marker_places(markdown: str, marker: str) -> Iterator[tuple[int, int]]:
    """Start and end of `[^M]` (no definition), `<sup>M</sup>`, and M in superscript digits, also within longer ones."""
    yield from (match.span() for match in re.finditer(rf"\[\^{re.escape(marker)}\](?!:)", markdown))
    yield from _superscript_tags(markdown, marker)
    if _DIGITS.issuperset(marker):
        digits = re.escape(marker.translate(_SUPERSCRIPT))
        yield from (match.span() for match in re.finditer(digits, markdown))


def _superscript_tags(markdown: str, marker: str) -> Iterator[tuple[int, int]]:
    content = re.compile(re.escape(marker) + "</sup>", re.IGNORECASE)
    position = inside = 0
    while (start := _SUP.search(markdown, position)) is not None:
        if inside <= start.end():
            inside = markdown.find(">", start.end()) + 1
            if not inside:
                return
        match = content.match(markdown, inside)
        if match:
            yield start.start(), match.end()
        position = match.end() if match else start.end()


def _best_match(text: str, windows: dict[str, None], *, side: str, enough: float) -> tuple[float | None, str]:
    """The best similarity of the text to the near end of a window, and that end; stops at the first good one."""
    wanted = clean(text)
    best: float | None = None
    nearest = ""
    for window in windows:
        cleaned = clean(window)
        if not cleaned:
            continue
        length = min(len(cleaned), 2 * len(wanted))
        part = _near_end(cleaned, length, side)
        ratio = fuzz.partial_ratio(wanted, part) / 100.0
        if best is None or ratio > best:
            best, nearest = ratio, part
        if ratio >= enough:
            break
    return best, nearest


def _near_end(cleaned: str, length: int, side: str) -> str:
    """The characters next to the marker; with nothing to compare, upstream takes them all."""
    if length == 0:
        return cleaned
    return cleaned[-length:] if side == "before" else cleaned[:length]


@lru_cache(maxsize=4096)
def clean(text: str) -> str:
    """Letters and digits only, normalised, in lower case."""
    return "".join(char for char in normalize(text) if char.isalnum()).lower()


_LONGEST_REPEAT = 5
_BLANKS = re.compile(r"\s+")
#: Han, kana, emoticons, pictographs, transport, flags: what upstream takes for a sign of a model gone astray.
_DISALLOWED = re.compile(
    "[\u4e00-\u9fff\u3040-\u309f\u30a0-\u30ff"
    "\U0001f600-\U0001f64f\U0001f300-\U0001f5ff\U0001f680-\U0001f6ff\U0001f1e0-\U0001f1ff]"
)


def check_baseline(markdown: str, rule: BaselineRule) -> Outcome:
    """Check the answer as it is, without normalisation. A blank page is checked for its length only."""
    if rule.max_length is not None:
        shown = without_images(markdown) if rule.max_length_skips_image_alt_tags else markdown
        count = count_alphanumerics(shown)
        if count <= rule.max_length:
            return PASSED
        return failed("baseline_blank_expected", alnum_count=count, max_length=rule.max_length, nearest=shown.strip())
    if count_alphanumerics(markdown) == 0:
        return failed("baseline_no_alnum", alnum_count=0)
    if rule.max_repeats is None:
        raise TypeError("`max_repeats` is null, which upstream accepts and then cannot compare with")
    for size, count in enumerate(trailing_repeats(markdown), 1):
        if count > rule.max_repeats:
            unit = _BLANKS.sub(" ", markdown[-1000:])[-size:]
            return failed("baseline_repeats", repeat_count=count, ngram_size=size, nearest=unit)
    if rule.check_disallowed_characters and (found := _DISALLOWED.findall(markdown)):
        return failed("baseline_disallowed", disallowed_count=len(found), nearest="".join(dict.fromkeys(found)))
    return PASSED


def count_alphanumerics(text: str) -> int:
    """Letters and digits of every script."""
    return sum(map(str.isalnum, text))


def without_images(markdown: str) -> str:
    """The text without Markdown images `![...](...)`, each on one line. Linear, whatever brackets are left open."""
    kept, position = [], 0
    while (start := markdown.find("![", position)) >= 0:
        line_end = markdown.find("\n", start)
        line_end = len(markdown) if line_end < 0 else line_end
        middle = markdown.find("](", start + 2, line_end)
        end = markdown.find(")", middle + 2, line_end) if middle >= 0 else -1
        if end < 0:
            # What is missing for this image is missing for every later one of the line.
            kept.append(markdown[position:line_end])
            position = line_end
        else:
            kept.append(markdown[position:start])
            position = end + 1
    return "".join(kept) + markdown[position:]


def trailing_repeats(text: str) -> list[int]:
    """Count how often the last 1, 2, 3, 4, 5 characters repeat at the end, blanks taken as one each."""
    text = _BLANKS.sub(" ", text)
    return [_repeats_of(text, size) for size in range(1, _LONGEST_REPEAT + 1)]


def _repeats_of(text: str, size: int) -> int:
    target, count, position = text[-size:], 0, len(text) - size
    while position >= 0 and text.startswith(target, position):
        count += 1
        position -= size
    return count
