"""Baseline tests: an answer that is not empty, not endless, and in plausible characters.

Protocol: docs/protocols/olmocr_bench.md#baseline.
"""

from __future__ import annotations

import re

from loupe.benchmarks.olmocr_bench.data.records import BaselineRule
from loupe.benchmarks.olmocr_bench.kinds.outcomes import PASSED, Outcome, failed

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
    """How often the last 1, 2, 3, 4, 5 characters stand in a row at the end, blanks taken as one each."""
    text = _BLANKS.sub(" ", text)
    return [_repeats_of(text, size) for size in range(1, _LONGEST_REPEAT + 1)]


def _repeats_of(text: str, size: int) -> int:
    target, count, position = text[-size:], 0, len(text) - size
    while position >= 0 and text.startswith(target, position):
        count += 1
        position -= size
    return count
