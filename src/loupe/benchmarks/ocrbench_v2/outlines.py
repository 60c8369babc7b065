"""Document parsing in OCRBench v2: only the outline of headings and lines is compared, not what they say.

Source: Yuliang-Liu/MultimodalOCR @ 794c36d, `OCRBench_v2/eval_scripts/page_ocr_metric.py` and zss 1.2.0; protocol:
docs/protocols/ocrbench_v2.md. Distance: Zhang and Shasha, SIAM Journal on Computing 18 (1989).
"""

from __future__ import annotations

import re

from loupe.benchmarks.ocrbench_v2.texts import UpstreamStopsError
from loupe.benchmarks.shared.ordered_trees import Node, TreeTooLargeError, tree_distance

_TOKENS = re.compile(r"<bos>|<eos>|<pad>|<unk>")


def outline_similarity(prediction: str, reference: str) -> float:
    """1 − tree distance / number of nodes of the larger outline; at most 1. Raises UpstreamStopsError if too large."""
    first, second = _outline(prediction), _outline(reference)
    try:
        distance = tree_distance(first, second, lambda _: 1, _rename)
    except TreeTooLargeError as error:
        raise UpstreamStopsError(str(error)) from None
    return 1 - distance / max(_size(first), _size(second))


def clean_line(line: str) -> str:
    """Clean one line as the official program does, in its order: each rule takes exactly one white-space character."""
    line = _TOKENS.sub("", line)
    line = re.sub(r"\s##(?=\S)", "", line)
    line = re.sub(r"\\\s", r"\\", line)
    line = re.sub(r"\s\*\s\*\s", "**", line)
    line = re.sub(r"{\s", "{", line)
    line = re.sub(r"\s}", "}", re.sub(r"\s}", "}", line))
    line = re.sub(r"\\(begin|end)\s", r"\\\1", line)
    line = line.replace("\\end{table}", "\\end{table}   ")
    return re.sub(r"[\n*_]", " ", line)


def _outline(text: str) -> Node[str]:
    root, title = Node("ROOT", []), Node("TITLE", [])
    root.children.append(title)
    current = ""
    place = title
    changed = False
    for raw in text.split("\n"):
        line = clean_line(raw)
        if line.startswith("#"):
            current = line.replace("#", "")
            root.children.append(Node(current, []))
            changed = True
            continue
        if changed:
            place = title if current == "" else _first_named(root, current)
            changed = False
        place.children.append(Node(line, []))
        if line == current and current != "":
            changed = True  # a line of the heading's own words may now stand before it
    return root


def _first_named(root: Node[str], label: str) -> Node[str]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.label == label:
            return node
        waiting += reversed(node.children)
    raise AssertionError(label)


def _size(root: Node[str]) -> int:
    return 1 + sum(map(_size, root.children))


def _rename(first: str, second: str) -> int:
    """Labels with a word in them are alike, whatever the word."""
    return not (first.split() and second.split())
