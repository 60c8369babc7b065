"""Document parsing in OCRBench v2: only the outline of headings and lines is compared, not what they say.

Source: Yuliang-Liu/MultimodalOCR @ 794c36d, `OCRBench_v2/eval_scripts/page_ocr_metric.py` and zss 1.2.0; protocol:
docs/protocols/ocrbench_v2.md. Distance: Zhang and Shasha, SIAM Journal on Computing 18 (1989).
"""

from __future__ import annotations

import re

from loupe.benchmarks.ocrbench_v2.texts import UpstreamStopsError

#: So many steps of the tree distance one item may take; a page of 700 lines against another takes 2 million.
MOST_STEPS = 10_000_000
_TOKENS = re.compile(r"<bos>|<eos>|<pad>|<unk>")


class _Node:
    __slots__ = ("children", "label")

    def __init__(self, label: str) -> None:
        self.label = label
        self.children: list[_Node] = []


def outline_similarity(prediction: str, reference: str) -> float:
    """1 − tree distance / number of nodes of the larger outline; at most 1. Raises UpstreamStopsError if too large."""
    first, second = _numbered(_outline(prediction)), _numbered(_outline(reference))
    return 1 - _distance(first, second) / max(len(first[0]), len(second[0]))


def clean_line(line: str) -> str:
    """One line as the official program cleans it, in its order."""
    line = _TOKENS.sub("", line)
    line = re.sub(r"(?<!\s)\s+##(?=\S)|^\s+##(?=\S)", "", line)
    line = re.sub(r"\\\s+", r"\\", line)
    line = re.sub(r"(?<!\s)\s+\*\s+\*\s+|^\s+\*\s+\*\s+", "**", line)
    line = re.sub(r"{\s+", "{", line)
    line = re.sub(r"(?<!\s)\s+}", "}", line)
    line = re.sub(r"\\(begin|end)\s+", r"\\\1", line)
    line = line.replace("\\end{table}", "\\end{table}   ")
    return re.sub(r"[\n*_]", " ", line)


def _outline(text: str) -> _Node:
    root, title = _Node("ROOT"), _Node("TITLE")
    root.children.append(title)
    current = ""
    place = title
    changed = False
    for raw in text.split("\n"):
        line = clean_line(raw)
        if line.startswith("#"):
            current = line.replace("#", "")
            root.children.append(_Node(current))
            changed = True
            continue
        if changed:
            place = title if current == "" else _first_named(root, current)
            changed = False
        place.children.append(_Node(line))
        if line == current and current != "":
            changed = True  # a line of the heading's own words may now stand before it
    return root


def _first_named(root: _Node, label: str) -> _Node:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.label == label:
            return node
        waiting += reversed(node.children)
    raise AssertionError(label)


def _numbered(root: _Node) -> tuple[list[bool], list[int], list[int]]:
    """Per node in postorder: whether its label has a word, its leftmost leaf; and the key roots."""
    worded: list[bool] = []
    leftmost: list[int] = []
    waiting: list[tuple[_Node, int]] = [(root, -1)]
    while waiting:
        node, start = waiting.pop()
        if start >= 0:
            worded.append(bool(node.label.split()))
            leftmost.append(start)
        else:
            waiting.append((node, -2))
            start = len(worded)
            waiting[-1] = (node, start)
            waiting += [(child, -1) for child in reversed(node.children)]
    last = {leaf: node for node, leaf in enumerate(leftmost)}
    return worded, leftmost, sorted(last.values())


def _distance(first: tuple[list[bool], list[int], list[int]], second: tuple[list[bool], list[int], list[int]]) -> int:
    (words_a, left_a, roots_a), (words_b, left_b, roots_b) = first, second
    steps = sum(r - left_a[r] + 1 for r in roots_a) * sum(r - left_b[r] + 1 for r in roots_b)
    if steps > MOST_STEPS:
        raise UpstreamStopsError(f"the outlines are too large to compare: {steps:,} steps, {MOST_STEPS:,} at most")
    known = [[0] * len(words_b) for _ in words_a]
    for a in roots_a:
        for b in roots_b:
            _compare(a, b, (words_a, left_a), (words_b, left_b), known)
    return known[-1][-1]


def _compare(
    a: int, b: int, first: tuple[list[bool], list[int]], second: tuple[list[bool], list[int]], known: list[list[int]]
) -> None:
    (words_a, left_a), (words_b, left_b) = first, second
    start_a, start_b = left_a[a], left_b[b]
    rows = [list(range(b - start_b + 2))]
    for i in range(start_a, a + 1):
        above, row = rows[-1], [i - start_a + 1]
        whole, known_row, other = left_a[i] == start_a, known[i], rows[left_a[i] - start_a]
        for j in range(start_b, b + 1):
            best = min(above[j - start_b + 1], row[-1]) + 1
            if whole and left_b[j] == start_b:
                best = min(best, above[j - start_b] + (not (words_a[i] and words_b[j])))
                known_row[j] = best
            else:
                best = min(best, other[left_b[j] - start_b] + known_row[j])
            row.append(best)
        rows.append(row)
