"""Compare short answers, passages, formulas, dictionaries, boxes and spotted words as OCRBench v2 does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from loupe.benchmarks.shared.answer_texts import literal
from loupe.benchmarks.shared.word_scores import score_page
from loupe.metrics import installed_wordnet, normalized_edit_similarity

_JOINERS = ("", ".", ". ", ",", ", ", "、", ";", "; ", " ", "和")
_TEXT_COMMAND = re.compile(r"\\text\{([^{}]*)\}")


class UpstreamStopsError(ValueError):
    """The official program ends its whole run at this item; Loupe scores it 0, goes on and says so."""


def fold(text: str) -> str:
    """Lower case, strip, each newline to a blank, in this order."""
    return text.lower().strip().replace("\n", " ")


def vqa(prediction: str, answers: Any) -> float:
    """Best over the answers, 0..1: up to four words count when they occur, longer answers by ANLS from 0.5 on."""
    found = fold(prediction)
    return max((_short_or_anls(found, fold(text), _few_words) for text in _texts(answers)), default=0.0)


def vqa_case_sensitive(prediction: str, answers: Any) -> float:
    """As `vqa` with case. A single text as `answers` follows the rule in `_single`; kept for parity."""
    found = prediction.strip().replace("\n", " ")
    if isinstance(answers, str):
        return _single(found, answers.strip().replace("\n", " "), _few_words)
    wanted = (text.strip().replace("\n", " ") for text in _texts(answers))
    return max((_short_or_anls(found, text, _few_words) for text in wanted), default=0.0)


def vqa_chinese(prediction: str, answers: Any) -> float:
    """As `vqa` without blanks; an answer is short that has fewer than four parts between commas."""
    found = fold(prediction).replace(" ", "")
    if isinstance(answers, str):
        return _single(found, fold(answers).replace(" ", ""), _few_parts)
    wanted = (fold(text).replace(" ", "") for text in _texts(answers))
    return max((_short_or_anls(found, text, _few_parts) for text in wanted), default=0.0)


def multiple_choice(prediction: str, answers: Any) -> float:
    """1.0 if the letters of the prediction are the answer: "A. cat" is "Acat", and not "A"; kept for parity."""
    return float("".join(filter(str.isalpha, prediction)) == only(answers))


def handwritten(prediction: str, answers: Any) -> float:
    """1.0 if the answer occurs, its characters one after the other or joined by one of a few separators."""
    answer = only_text(answers)
    return float(any(joiner.join(answer) in prediction for joiner in _JOINERS))


def formula(prediction: str, answers: Any, *, unwrap_text: bool = False) -> float:
    r"""1.0 if an answer occurs, blanks apart; with `unwrap_text`, `\text{…}` counts as what it holds."""

    def prepared(text: str) -> str:
        text = _TEXT_COMMAND.sub(r"\1", text) if unwrap_text else text
        return text.strip().replace("\n", " ").replace(" ", "")

    wanted = [only_text(answers)] if unwrap_text else [answers] if isinstance(answers, str) else _texts(answers)
    return float(any(prepared(answer) in prepared(prediction) for answer in wanted))


def counted(prediction: str, answers: Any, how: str | None) -> float:
    """Text counting, 0..1: the number as a text (exact match) or how near it is (regression)."""
    if how is None:
        raise UpstreamStopsError("a question that counts has no `eval`")
    if how == "exact match":
        if isinstance(answers, str):
            return float(fold(answers) in prediction.lower())
        return float(any(fold(text) in prediction for text in _texts(answers)))
    if how != "regression":
        return 0.0
    digits = re.search(r"\d+", fold(prediction))
    if digits is None or len(digits.group()) > 4_300:
        return 0.0
    number = int(digits.group())
    return max((_nearness(number, text) for text in _texts(answers)), default=0.0) if number else 0.0


def passage(prediction: str, reference: Any, *, needs_words: bool = False) -> float:
    """Mean of BLEU, METEOR, F-measure and edit similarity, 0..1.

    Where a side has no word, the F-measure counts 0; with `needs_words` it raises UpstreamStopsError.
    """
    if not isinstance(reference, str) or not (prediction or reference):
        raise UpstreamStopsError("there is no text to compare")
    page = score_page(prediction, reference, synonyms=installed_wordnet())
    if page.f_measure is None and needs_words:
        raise UpstreamStopsError("a side has no word")
    return (page.bleu + page.meteor + (page.f_measure or 0.0) + 1 - page.edit_distance) / 4


def only(answers: Any) -> Any:
    """The one answer of a list (one character stands for itself). Raises UpstreamStopsError for none or several."""
    if not isinstance(answers, list | str) or len(answers) != 1:
        raise UpstreamStopsError("exactly one answer is expected")
    return answers[0]


def only_text(answers: Any) -> str:
    """The one answer, which is a text. Raises UpstreamStopsError."""
    answer = only(answers)
    if not isinstance(answer, str):
        raise UpstreamStopsError("the answer is not a text")
    return answer


def _texts(answers: Any) -> list[str]:
    values = answers if isinstance(answers, list) else [answers]
    if not all(isinstance(value, str | int | float) for value in values):
        raise UpstreamStopsError("an answer is neither a text nor a number")
    return [str(value) for value in values]


def _few_words(answer: str) -> bool:
    return len(answer.split()) < 5


def _few_parts(answer: str) -> bool:
    return len(answer.split(",")) < 4


def _anls(found: str, wanted: str) -> float:
    similarity = normalized_edit_similarity(found, wanted)
    return similarity if similarity >= 0.5 else 0.0


def _short_or_anls(found: str, wanted: str, is_short: Callable[[str], bool]) -> float:
    return float(wanted in found) if is_short(wanted) else _anls(found, wanted)


def _single(found: str, wanted: str, is_short: Callable[[str], bool]) -> float:
    """A text in place of a list: a short one may be alike only, a long one is never right; kept for parity."""
    if not is_short(wanted):
        return 0.0
    return 1.0 if wanted in found else _anls(found, wanted)


def _nearness(number: int, answer: str) -> float:
    try:
        wanted = int(answer)
    except ValueError:
        raise UpstreamStopsError("the answer is not a whole number") from None
    if number >= 2 * wanted or not wanted:
        return 0.0
    nearness = 1 - abs(number - wanted) / wanted
    return nearness if nearness > 0.5 else 0.0


_FENCE = re.compile(r"```(?:python|json)?\n", re.IGNORECASE)
_RUN = re.compile(r"[\w\s]+")
_VALUE = re.compile(r"""["']?\s*[:=]\s*["']?([^\n,"'{}]+)["']?""")
_FOUR = re.compile(r"[(\[]\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(\d{1,9})\s*[)\]]")
_INNERMOST = re.compile(r"[\[(]([^\[\]()]*)[\])]")
_QUOTED = re.compile(r'\s*"(.*)"\s*')
_EDGES = "!?.:,*\"()·[]/'"

Box = tuple[int, int, int, int]


def dictionary(text: str) -> dict[str, str]:
    """The flat dictionary in an answer: JSON, a Python literal, or pairs `key: value`; {} where there is none."""
    opening = _FENCE.search(text)
    closing = text.find("\n```", opening.end()) if opening else -1
    inside = text[opening.end() : closing] if opening and closing >= 0 else text.strip()
    found: Any = None
    try:
        found = json.loads(inside)
    except (ValueError, RecursionError):
        try:
            found = literal(inside)
        except ValueError:
            found = _pairs(inside)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        return {}
    return {key.strip(): str(value).strip() for key, value in found.items()}


def fields(prediction: str, answer: Any) -> float:
    """Share of keys, of both sides together, whose value is one of the accepted ones; 0..1."""
    accepted = _accepted(answer)
    if accepted is None:
        return 0.0
    found = dictionary(prediction)
    keys = found.keys() | accepted.keys()
    if not all(accepted.values()):
        return 0.0
    right = sum(
        1 for key, values in accepted.items() if key in found and _squeezed(found[key]) in set(map(_squeezed, values))
    )
    return right / len(keys) if keys else 0.0


def answer_with_box(prediction: str, answers: Any, box: Any) -> float:
    """Half a point for the answer, half for the overlap of its box; 0..1."""
    if box is None:
        raise UpstreamStopsError("the item has no `bbox`")
    found = dictionary(prediction)
    text = vqa(found["answer"], answers) if "answer" in found else 0.0
    try:
        overlap = box_overlap(literal(found.get("bbox")), box)
    except (ValueError, TypeError, LookupError):
        overlap = 0.0
    return 0.5 * text + 0.5 * overlap


def grounding(prediction: str, box: Any) -> float:
    """Overlap of the last box in the answer with the right one; 0..1."""
    boxes = [tuple(map(int, found)) for found in _FOUR.findall(prediction)]
    boxes = [found for found in boxes if max(found) <= 1000]
    return box_overlap(boxes[-1], box) if boxes else 0.0


def box_overlap(first: Any, second: Any) -> float:
    """Intersection over union of two boxes; corners are not sorted, areas keep their sign, as upstream."""
    try:
        a, b = [int(value) for value in first], [int(value) for value in second]
    except (ValueError, TypeError, OverflowError):
        return 0.0
    if min(len(a), len(b)) < 4:
        raise UpstreamStopsError("a box has fewer than four coordinates")
    common = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common / union if union else 0.0


def spotting(prediction: str, polygons: Any, contents: Any) -> float:
    """Harmonic mean of precision and recall of words with their places; 0..1. Pairs are first fit, as upstream."""
    if polygons is None or contents is None:
        raise UpstreamStopsError("the item has no `bbox` or no `content`")
    found = [(box, text) for box, text in _spotted(prediction) if box[0] < box[2] and box[1] < box[3]]
    if not found or not polygons:
        return 0.0
    wanted = [(_hull(polygon), _content(text)) for polygon, text in zip(polygons, contents, strict=False)]
    ignored = [box for box, text in wanted if text == "###"]
    cared = [(box, text) for box, text in wanted if text != "###"]
    open_ = [(b, t) for b, t in found if not any(_common(b, box) > 0.5 * _area(b) for box in ignored)]
    total, right, used = len(open_), 0, [False] * len(open_)
    for box, text in cared:
        for place, (other, said) in enumerate(open_):
            common = _common(box, other)
            if not used[place] and common > 0.5 * (_area(box) + _area(other) - common):
                used[place] = True
                right += _same_word(text, said)
                break
    return 2 * right / (total + len(cared)) if cared and right else 0.0


def _pairs(text: str) -> dict[str, str]:
    """All `key: value`, from left to right; each run of word characters and blanks is looked at once."""
    found, place = {}, 0
    while run := _RUN.search(text, place):
        pair = _VALUE.match(text, run.end())
        if pair:
            found[run.group().strip()] = pair.group(1).strip()
        place = pair.end() if pair else run.end()
    return found


def _accepted(answer: Any) -> dict[str, list[str]] | None:
    """Accepted values by key; a plain text in a dictionary is taken letter by letter, as upstream."""
    if isinstance(answer, str):
        answer = _written(answer)
        if answer is None:
            return None
        if not isinstance(answer, dict):
            raise UpstreamStopsError("the answer is no dictionary")
        answer = {key: value if isinstance(value, list) else [value] for key, value in answer.items()}
    if not isinstance(answer, dict):
        raise UpstreamStopsError("the answer is no dictionary")
    accepted = {key: list(value) if isinstance(value, list | str) else value for key, value in answer.items()}
    if not all(isinstance(v, list) and all(isinstance(each, str) for each in v) for v in accepted.values()):
        raise UpstreamStopsError("a value of the answer is not a text")
    return accepted


def _written(answer: str) -> Any:
    text: Any = answer.strip('"')
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        try:
            text = literal(text)
            return literal(text) if isinstance(text, str) else text
        except ValueError:
            return None


def _squeezed(text: str) -> str:
    return text.lower().strip().replace("\n", " ").replace(" ", "")


def _spotted(prediction: str) -> list[tuple[Box, str]]:
    try:
        value = literal(prediction)
    except ValueError:
        value = None
        rows: list[Sequence[Any]] = [each.split(",", 4) for each in _INNERMOST.findall(prediction)]
    if value is not None:
        rows = [each for each in value if isinstance(each, list | tuple)] if isinstance(value, list | tuple) else []
    found: dict[tuple[Box, str], None] = {}
    for row in rows:
        if len(row) < 5:
            continue
        try:
            box = tuple(int(str(value)) for value in row[:4])
        except ValueError:
            continue
        if all(0 <= value <= 1000 for value in box):
            text = str(row[4]).replace("\n", "").strip().strip('"').strip("'")
            found[(box[0], box[1], box[2], box[3]), _unquoted(text)] = None
    return list(found)


def _hull(polygon: Any) -> Box:
    try:
        xs, ys = polygon[0::2], polygon[1::2]
        return int(str(min(xs))), int(str(min(ys))), int(str(max(xs))), int(str(max(ys)))
    except (ValueError, TypeError):
        raise UpstreamStopsError("a box of the answer has coordinates that are no whole numbers") from None


def _content(text: Any) -> str:
    if not isinstance(text, str) or "\n" in text:
        raise UpstreamStopsError("a word of the answer is not a text of one line")
    return _unquoted(text)


def _unquoted(text: str) -> str:
    whole = _QUOTED.fullmatch(text)
    return whole.group(1).replace('\\"', '"') if whole else text


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _common(a: Box, b: Box) -> int:
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


def _same_word(wanted: str, found: str) -> bool:
    wanted, found = wanted.upper(), found.upper()
    if wanted == found:
        return True
    if not wanted:
        raise UpstreamStopsError("a word of the answer is empty")
    first, last = wanted[0] in _EDGES, wanted[-1] in _EDGES
    return (
        (first and wanted[1:] == found) or (last and wanted[:-1] == found) or (first and last and wanted[1:-1] == found)
    )
