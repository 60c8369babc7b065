"""How OCRBench v2 compares short answers, whole passages and formulas.

Source: Yuliang-Liu/MultimodalOCR @ 794c36d, `OCRBench_v2/eval_scripts/`; protocol: docs/protocols/ocrbench_v2.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

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
