"""Key information in CC-OCR: records in an answer, field by field and as trees.

Source: AlibabaResearch/AdvancedLiterateMachinery @ fb6187e, `Benchmarks/CC-OCR/evaluation` (after Donut); protocol:
docs/protocols/cc_ocr.md#kie.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from loupe.benchmarks.shared.ordered_trees import Node, TreeTooLargeError, tree_distance
from loupe.metrics import levenshtein_distance

_LEAF = "<leaf>"
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", ord("、"): ","}
_IDEOGRAPHS = "\u4e00-\u9fff"
_BESIDE_IDEOGRAPHS = (
    re.compile(rf"(?<=[{_IDEOGRAPHS}]) (?=[{_IDEOGRAPHS}a-zA-Z0-9])"),
    re.compile(rf"(?<=[a-zA-Z0-9]) (?=[{_IDEOGRAPHS}])"),
)
_SIGN = re.compile(r"(?<![0-9]) ?([,.!?:;]) ?")
_BETWEEN_KINDS = re.compile(r"(?<=[0-9])(?=[a-zA-Z])|(?<=[a-zA-Z])(?=[0-9])")
#: Records nested deeper than this are taken for no answer.
_DEEPEST = 100


class RecordScore(NamedTuple):
    """Fields that are right, fields that are wrong or missing, and how alike both trees are (0..1)."""

    right: int
    wrong: int
    alike: float


def read_record(text: str) -> Any:
    """The JSON value in an answer. Raises ValueError for what the official program rejects."""
    _, opening, rest = text.partition("```json")
    inside, closing, _ = rest.partition("```")
    if opening and not closing:
        raise ValueError("the code block does not end")
    try:
        found = json.loads((inside if opening else text).strip().replace("\n", ""))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if found is None:
        raise ValueError("null is no record")
    check_depth(found)
    return found


def score_record(prediction: Any, label: Any) -> RecordScore:
    """Compare two JSON values."""
    found, wanted = (_in_order(_spelled_alike(value)) for value in (prediction, label))
    given, expected = Counter(_fields(found)), Counter(_fields(wanted))
    right = (given & expected).total()
    wrong = (given - expected).total() + (expected - given).total()
    return RecordScore(right, wrong, _alike(found, wanted))


def check_depth(value: Any) -> None:
    """Raise ValueError for a value that is nested deeper than any record."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError("nested too deeply")


def _spelled_alike(value: Any) -> Any:
    """Texts of a record in one spelling; those that stand directly in a list stay as they are, as upstream."""
    if isinstance(value, dict):
        return {key: _spelled_alike(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_spelled_alike(each) if isinstance(each, dict) else each for each in value]
    return spelled_alike(value) if isinstance(value, str) else value


def spelled_alike(text: str) -> str:
    """Half-width signs, and blanks where the official program wants them.

    >>> spelled_alike("中 文、12kg x .y")
    '中文, 12 kg x. y'
    """
    # Runs first: the result is the same, and no long run is looked at more than once.
    text = re.sub(r"\s+", " ", text.translate(_HALF_WIDTH))
    for blank in _BESIDE_IDEOGRAPHS:
        text = blank.sub("", text)
    text = _BETWEEN_KINDS.sub(" ", _SIGN.sub(r"\1 ", text))
    return re.sub(r"\s+", " ", text)


def _in_order(value: Any) -> Any:
    """Objects sorted by key and without what is empty, lists of objects, and lists of texts for all the rest."""
    if isinstance(value, dict):
        ordered = ((key, _in_order(value[key])) for key in sorted(value, key=lambda key: (len(key), key)))
        return {key: each if isinstance(each, list) else [each] for key, each in ordered if each}
    if isinstance(value, list):
        if all(isinstance(each, dict) for each in value):
            return [ordered for each in value if (ordered := _in_order(each))]
        # Exactly these types: true and false are none of them.
        return [text for each in value if type(each) in (str, int, float) and (text := str(each).strip())]
    return [str(value).strip()]


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _fields(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for each in value:
            yield from _fields(each, path)
    else:
        yield path, value


def _alike(found: Any, wanted: Any) -> float:
    """1 − distance of the trees / price of the label's tree, at least 0; 0 for a label without fields."""
    label = _tree(wanted, "<root>")
    whole = _price_of_all(label) - 1
    if not whole:
        return 0.0
    try:
        distance = tree_distance(_tree(found, "<root>"), label, _price, _rename)
    except TreeTooLargeError:
        return 0.0
    return max(0.0, 1 - distance / whole)


def _tree(value: Any, name: str) -> Node[str]:
    if isinstance(value, dict):
        return Node(name, [_tree(each, key) for key, each in value.items()])
    if all(isinstance(each, dict) for each in value):
        return Node(name, [_tree(each, "<subtree>") for each in value])
    return Node(name, [Node(f"{_LEAF}{each}", []) for each in value])


def _price(label: str) -> int:
    return len(label.replace(_LEAF, "")) if _LEAF in label else 1


def _price_of_all(node: Node[str]) -> int:
    return _price(node.label) + sum(map(_price_of_all, node.children))


def _rename(first: str, second: str) -> int:
    leaves = [label.replace(_LEAF, "") for label in (first, second) if _LEAF in label]
    if len(leaves) == 2:
        return levenshtein_distance(*leaves)
    return 1 + len(leaves[0]) if leaves else int(first != second)
