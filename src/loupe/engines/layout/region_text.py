"""The answer for one region, cleaned and given the form of its label (docs/engines/glm-ocr.md).

Every step is linear in the answer but the search for loops, which is n log n (`loupe.metrics.repetition`).
"""

from __future__ import annotations

import re
from collections import Counter

from loupe.engines.layout.labels import category_of
from loupe.metrics.repetition import first_run

#: Shorter answers are not searched for loops.
_LOOPS_FROM = 2048
_LINES, _LINE_SHARE, _IN_A_ROW = 10, 0.8, 3
_TAB = "\\t"
_RULERS = tuple(re.compile(rf"({sign})\1{{2,}}") for sign in (r"\.", "·", "_", r"\\_"))
#: The body of a formula in dollars: no bare dollar, and a backslash only with the character that it escapes.
_BODY = re.compile(r"(?>(?:[^$\\]|\\.)*)")
_NUMBERED = re.compile(r"[(（](\d+|[A-Za-z])[)）](.*)")
_LISTED = re.compile(r"(\d+|[A-Za-z])([.)）])(.*)")
_LONE_NEWLINE = re.compile(r"(?<!\n)\n(?!\n)")
_OPENINGS, _CLOSINGS = ("$$", "\\[", "\\("), ("$$", "\\]", "\\)")


def format_region(answer: str, label: str) -> str:
    """The Markdown of one region."""
    category = category_of(label)
    if category == "table" and answer.startswith("<table") and answer.endswith("</table>"):
        return answer.strip()
    if category == "formula" and answer.startswith("$$") and answer.endswith("$$"):
        return _displayed(answer.strip())
    text = clean(answer)
    if category == "formula":
        return _displayed(text)
    return _paragraphs(_titled(text, label)) if category == "text" else text


def clean(answer: str) -> str:
    r"""An answer without literal `\t` around it, long rulers and loops, and with even spaces around formulas."""
    text = _without_last_tabs(answer[_first_not_tab(answer) :].lstrip()).rstrip()
    for ruler in _RULERS:
        text = ruler.sub(r"\1\1\1", text)
    if len(text) >= _LOOPS_FROM:
        text = without_loop(text)
    return space_formulas(text).strip()


def _first_not_tab(text: str) -> int:
    place = 0
    while text.startswith(_TAB, place):
        place += len(_TAB)
    return place


def _without_last_tabs(text: str) -> str:
    """Without literal tabs at the end, or before a newline at the end."""
    end = len(text) - text.endswith("\n")
    while text.endswith(_TAB, 0, end):
        end -= len(_TAB)
    return text[:end]


def without_loop(text: str) -> str:
    """`text` up to the first unit of its first loop; of lines that are nearly all equal, up to the first of three.

    What stands behind a loop is lost. Source: `clean_repeated_content` of the SDK.
    """
    stripped = text.strip()
    run = first_run(stripped)
    if run is not None:
        return stripped[: run.start + run.period]
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n")) if line.strip()]
    if len(lines) < _LINES:
        return text
    common, count = Counter(line for _, line in lines).most_common(1)[0]
    if count < _LINES or count / len(lines) < _LINE_SHARE:
        return text
    equal = [line == common for _, line in lines]
    for place in range(len(lines) - _IN_A_ROW + 1):
        if all(equal[place : place + _IN_A_ROW]):
            return "\n".join(text.split("\n")[: lines[place][0] + 1])
    return text


def space_formulas(text: str) -> str:
    """`$ x $` as `$x$`, and a space between a formula and a letter or digit beside it."""
    parts: list[str] = []
    done = place = 0
    while (opening := text.find("$", place)) >= 0:
        place = opening + 1
        if opening and text[opening - 1] == "$":
            continue
        end = _body_end(text, place)
        # Escaped dollars up to there would open a formula with the same end.
        place = max(place, end)
        if end > opening + 1 and text[end : end + 1] == "$" and text[end + 1 : end + 2] != "$":
            place = end + 1
            formula = text[opening + 1 : end].strip()
            if formula:
                before = text[done:opening]
                parts += [before, " " if before and before[-1].isalnum() else "", f"${formula}$"]
                parts.append(" " if text[place : place + 1].isalnum() else "")
                done = place
    return "".join([*parts, text[done:]])


def _body_end(text: str, start: int) -> int:
    """Where the body of a formula that starts here ends: at a bare dollar, a stray backslash, or the end."""
    found = _BODY.match(text, start)
    return found.end() if found else start


def _titled(text: str, label: str) -> str:
    """Titles get their hash marks, whatever marks the model gave them."""
    if label == "doc_title":
        return "# " + _without_hashes(text)
    if label == "paragraph_title":
        text = text[2:].lstrip() if text.startswith(("- ", "* ")) else text
        return "## " + _without_hashes(text).lstrip()
    return text


def _without_hashes(text: str) -> str:
    return text.lstrip("#").lstrip() if text.startswith("#") else text


def _displayed(text: str) -> str:
    """A formula between lines of double dollars, without the delimiters that it came with."""
    if text.startswith(_OPENINGS):
        text = text[2:].strip()
    if text.endswith(_CLOSINGS):
        text = text[:-2].strip()
    return f"$$\n{text}\n$$"


def _paragraphs(text: str) -> str:
    """Text as Markdown: code closed, bullets and numbers with a space, every line a paragraph.

    Kept from the SDK: in a text of one line, `1.5 metres` and `a.m.` get a space after the point, too.
    """
    if text.startswith("```") and not text.endswith("```"):
        text += "\n```"
    if text.startswith(("·", "•", "* ")):
        text = "- " + text[1:].lstrip()
    if numbered := _NUMBERED.fullmatch(text):
        text = f"({numbered[1]}) {numbered[2].lstrip()}"
    if listed := _LISTED.fullmatch(text):
        text = f"{listed[1]}{listed[2].replace('）', ')')} {listed[3].lstrip()}"
    return _LONE_NEWLINE.sub("\n\n", text)
