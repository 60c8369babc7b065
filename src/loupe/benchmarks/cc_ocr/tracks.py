"""Score the tracks of CC-OCR: words, key information and document parsing.

Words or characters count in any order. Records are compared field by field and as trees. Pages and formulas are LaTeX,
molecules SMILES, tables HTML.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from loupe.benchmarks.shared.ordered_trees import Node, TreeTooLargeError, tree_distance
from loupe.metrics import levenshtein_distance, normalized_edit_similarity, teds
from loupe.metrics.teds.table_tree import TedsError

#: The official programs add this to every number that they divide by.
TINY = 1e-9
_MARKS = ("###", "***")
_OTHER = re.compile(r"[^A-Za-z0-9]")
_BY_CHARACTER = frozenset({"Arabic", "Japanese", "Korean"})


def counted(prediction: str, label: str, track: str, subset: str) -> tuple[float, float, float]:
    """Count the words or characters that are right, those of the label, and those of the prediction."""
    found, wanted = (Counter(_tokens(text, track, subset)) for text in (prediction, label))
    return float((found & wanted).total()), float(wanted.total()), float(found.total())


def f1(right: float, wanted: float, found: float) -> float:
    """F1 of such counts, 0..1; 0 where the label is empty, also for an empty prediction."""
    recall, precision = right / (wanted + TINY), right / (found + TINY)
    return 2 * recall * precision / (recall + precision + TINY)


def _tokens(text: str, track: str, subset: str) -> list[str]:
    text = text.strip()
    for mark in _MARKS:
        text = text.replace(mark, "")
    words = text.split()
    if subset in _BY_CHARACTER or "zh" in subset:
        return [character.lower() for word in words for character in word]
    words = [word.lower() for word in words]
    if track == "multi_scene_ocr":
        words = [_OTHER.sub("", word) for word in words]
    return [word for word in words if word]


_LEAF = "<leaf>"
_HALF_WIDTH_AND_COMMAS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", ord("、"): ","}
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
    return RecordScore(right, wrong, _alike_trees(found, wanted))


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
    text = re.sub(r"\s+", " ", text.translate(_HALF_WIDTH_AND_COMMAS))
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


def _alike_trees(found: Any, wanted: Any) -> float:
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


#: What is deleted from a page: where it begins, and the ends that follow in the same line.
_PREAMBLE = (
    ("\\documentclass{", ("}",)),
    ("\\usepackage[", ("]{", "}")),
    ("\\usepackage{", ("}",)),
    ("\\geometry{", ("}",)),
    ("\\begin{document}", ()),
    ("\\end{document}", ()),
    ("\\noindent", ()),
)
_FENCE = "```"
_BLANKS = str.maketrans("", "", " \n")
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


class UpstreamStopsError(ValueError):
    """The official program ends its whole run at this item; Loupe scores it 0, goes on and says so."""


def parsed(prediction: str, label: str, op: str) -> float:
    """The score of one answer, 0..1 (a table may score below 0). Raises UpstreamStopsError."""
    if op not in _OPS:
        raise UpstreamStopsError(f"there is no rule for {op!r}")
    return _OPS[op](prediction, label)


def _page(prediction: str, label: str) -> float:
    for opening, ends in _PREAMBLE:
        prediction = "\n".join(_without(line, opening, ends) for line in prediction.split("\n"))
    return _alike(_fenced(prediction, "latex").translate(_BLANKS), label.translate(_BLANKS))


def _formula(prediction: str, label: str) -> float:
    for mark in ("\n", "```latex", _FENCE, "\t", " "):
        prediction = prediction.replace(mark, " " if mark == "\n" else "")
    return _alike(prediction, label.replace(" ", ""))


def _molecule(prediction: str, label: str) -> float:
    for mark in ("\n", " ", "<smiles>", "</smiles>"):
        prediction = prediction.replace(mark, "")
    return _alike(prediction, label.replace(" ", ""))


def _table(prediction: str, label: str) -> float:
    try:
        return teds(_one_table(_fenced(prediction, "html")), _one_table(label), variant="ibm")
    except TedsError as error:
        raise UpstreamStopsError(str(error)) from None


_OPS: Mapping[str, Callable[[str, str], float]] = {
    "doc": _page,
    "formula": _formula,
    "molecular": _molecule,
    "table": _table,
}


def _alike(prediction: str, label: str) -> float:
    if not (prediction or label):
        raise UpstreamStopsError("there is no text to compare")
    return normalized_edit_similarity(prediction, label)


def _without(line: str, opening: str, ends: tuple[str, ...]) -> str:
    """The line without everything from an opening to the nearest of its ends."""
    kept: list[str] = []
    place = 0
    while (start := line.find(opening, place)) >= 0:
        end = start + len(opening)
        for mark in ends:
            found = line.find(mark, end)
            if found < 0:  # and so it is for every later opening
                return "".join([*kept, line[place:]])
            end = found + len(mark)
        kept.append(line[place:start])
        place = end
    return "".join([*kept, line[place:]])


def _fenced(text: str, language: str) -> str:
    """Return the content of the first code block of this language, closed or not; without one all of the text."""
    _, opening, rest = text.partition(_FENCE + language)
    if not opening:
        return text
    end = rest.find(_FENCE, 1)
    return rest[:end] if end > 0 else rest.split(opening)[0]


def _one_table(text: str) -> str:
    """All tables of a text in the spelling that is compared, as a page."""
    text = text if "</table>" in text else text + "</table>"
    found, place = [], 0
    while (start := text.find("<table", place)) >= 0:
        inside = text.find(">", start)
        end = text.find("</table>", inside + 1) if inside >= 0 else -1
        if end < 0:
            break
        place = end + len("</table>")
        found.append(text[start:place])
    markup = re.sub(r">\s+<", "><", re.sub(r"<table[^>]*>", "<table>", "".join(found)))
    parts = [_cell_without_blanks(part) for part in markup.split("<")]
    return f"<html><body>{'<'.join(parts).replace(chr(10), '').translate(_HALF_WIDTH)}</body></html>"


def _cell_without_blanks(part: str) -> str:
    tag, end, text = part.partition(">")
    return tag + end + text.translate(_BLANKS)
