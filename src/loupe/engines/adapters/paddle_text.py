"""PaddleOCR-VL: loops cut off and formulas set in dollars, as its pipeline does with the text of every block.

Source: `truncate_repetitive_content` and the pipeline of PaddleX 3.7.2; docs/engines/paddleocr-vl.md.
"""

from __future__ import annotations

from collections import Counter

#: Answers shorter than this are left alone; tables repeat themselves honestly.
_LEAST, _LEAST_TABLE = 50, 5000
_TABLE_MARKS = ("<fcel>", "<ecel>", "<nl>")
_TAIL_UNIT, _TAIL_TIMES, _TAIL_SHARE, _TAIL_LENGTH = 8, 5, 0.5, 100
_WHOLE_TIMES, _WHOLE_LENGTH = 10, 10
_LINES, _LINE_SHARE = 10, 0.8


def paddle_repeats(text: str) -> str:
    """Cut off what the model repeats. What is a table here shows in its tokens, as answers have no other label."""
    return truncate_repetition(text, _LEAST_TABLE if any(mark in text for mark in _TABLE_MARKS) else _LEAST)


def paddle_math(text: str) -> str:
    r"""Formulas in `\(…\)` and `\[…\]` set in dollars. Kept from there: every dollar that stood on the page goes."""
    if not any(left in text and right in text for left, right in (("\\(", "\\)"), ("\\[", "\\]"))):
        return text
    text = text.replace("$", "").replace("\\(", " $ ").replace("\\)", " $")
    text = text.replace("\\[\\[", "\\[").replace("\\]\\]", "\\]")
    return text.replace("\\[", " $$ ").replace("\\]", " $$ ")


def truncate_repetition(text: str, least: int) -> str:
    """`text` without its loop: a single line that ends in one or is nothing else, or lines that are nearly all equal.

    Texts of fewer than `least` characters, and texts without a loop, come back unchanged.
    """
    line = text.strip()
    if len(text) < least or not line:
        return text
    if "\n" not in line:
        start = _start_of_repeated_end(line) if len(line) > _TAIL_LENGTH else None
        if start is not None:
            return line[:start]
        unit = _repeated_whole(line) if len(line) > _WHOLE_LENGTH else None
        return text if unit is None else unit
    lines = [line for raw in text.split("\n") if (line := raw.strip())]
    if len(lines) < _LINES:
        return text
    common, count = Counter(lines).most_common(1)[0]
    return common if count >= _LINES and count / len(lines) >= _LINE_SHARE else text


def _start_of_repeated_end(line: str) -> int | None:
    """Where the unit that the line ends with five times begins to stand, if its copies are more than half of it.

    Of all units the longest counts, whatever share of the line its copies make.
    """
    same = common_beginnings(line[::-1], len(line) // _TAIL_TIMES)
    for length in range(len(line) // _TAIL_TIMES, _TAIL_UNIT - 1, -1):
        if same[length] >= (_TAIL_TIMES - 1) * length:
            copies = (same[length] // length + 1) * length
            return len(line) - copies if copies > len(line) * _TAIL_SHARE else None
    return None


def common_beginnings(text: str, most: int) -> list[int]:
    """For each place up to `most`: how far the text from there agrees with its beginning (Z function, linear)."""
    same = [len(text)] + [0] * most
    left = right = 0
    for place in range(1, most + 1):
        length = min(right - place, same[place - left]) if place < right else 0
        if place + length >= right:
            length = max(length, 0)
            while place + length < len(text) and text[length] == text[place + length]:
                length += 1
            left, right = place, place + length
        same[place] = length
    return same


def _repeated_whole(line: str) -> str | None:
    """The shortest unit of which the line consists, if it stands there at least ten times."""
    period = (line + line).find(line, 1)
    return line[:period] if len(line) // period >= _WHOLE_TIMES else None
