"""Numbers beside the score that say how an answer went wrong; meanings in docs/diagnostics.md."""

from __future__ import annotations

from loupe.engines.adapters.steps import think
from loupe.engines.chat.endings import is_only_reasoning
from loupe.errors import PageError
from loupe.metrics.edit import insertion_counts
from loupe.metrics.repetition import find_loop
from loupe.scoring.scripts import script_mismatch
from loupe.types import Benchmark, Prediction, Sample

#: Above this product of lengths (0.2 s) the alignment is replaced by a lower bound.
_ALIGNED = 2_000_000_000
#: And above this many characters together, of which each takes 60 bytes.
_ALIGNED_LENGTH = 1_000_000
#: All white space that `str.split` knows; none stands beyond the CJK space.
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))

#: What says nothing of a label: "other" for "receipt" has neither inserted characters nor a length of its own.
_OF_TEXT = ("insertion_rate", "script_mismatch", "prediction_length", "reference_length")


def diagnose(benchmark: Benchmark, sample: Sample, prediction: Prediction, text: str) -> dict[str, float]:
    """The diagnostics of one sample; `text` is the answer as it is scored. Nothing for a failed prediction.

    What cannot be told for this sample (no reference, too few letters, unreadable page) is left out, not zero.
    """
    if prediction.failed:
        return {}
    reference = benchmark.reference(sample)
    cut_off = prediction.outcome == "truncated" or prediction.finish_reason == "length"
    found: dict[str, float | None] = {
        "empty": not text.strip(),
        "truncated": cut_off,
        "only_reasoning": _only_reasoning(prediction),
        "loop": find_loop(text) is not None,
        "text_on_blank": None if reference else _text_on_blank(sample, text),
        "insertion_rate": insertion_rate(text, reference) if reference and text else None,
        "script_mismatch": script_mismatch(text, reference),
        "prediction_length": len(text),
        # Where the truth is something else than a text (tests, fields), there is no length to tell.
        "reference_length": len(reference) if reference or isinstance(sample.truth, str | None) else None,
    }
    of_text = _OF_TEXT if (sample.task or benchmark.task) == "class" else ()
    return {name: float(value) for name, value in found.items() if value is not None and name not in of_text}


def _only_reasoning(prediction: Prediction) -> bool | None:
    """True if an answer with reasoning has nothing else; None if it has no reasoning."""
    reasoned = bool(prediction.reasoning) or think(prediction.text) != prediction.text
    return is_only_reasoning(prediction.text, prediction.reasoning) if reasoned else None


def insertion_rate(prediction: str, reference: str) -> float:
    """Share of predicted characters without a counterpart in the reference: 0..1, lower is better; 0 for an empty one.

    White space is no invented text and does not count, or a text that is right would have a rate for its line breaks.
    For huge texts a lower bound: what is longer than the reference has no counterpart.
    """
    # Counted before any copy is made: an answer may have as many words as memory holds.
    predicted, expected = _length_without_blanks(prediction), _length_without_blanks(reference)
    if not predicted:
        return 0.0
    if predicted * expected > _ALIGNED or predicted + expected > _ALIGNED_LENGTH:
        return max(0, predicted - expected) / predicted
    inserted, _ = insertion_counts("".join(prediction.split()), "".join(reference.split()))
    return inserted / predicted


def _length_without_blanks(text: str) -> int:
    return len(text) - sum(map(text.count, _BLANKS))


def _text_on_blank(sample: Sample, text: str) -> bool | None:
    """True if a page without ink and ground truth was "read"; None if the page has either, or is unreadable."""
    if sample.truth or not sample.images:
        return None
    from loupe.data.pages import BLANK_INK, ink_fraction

    try:
        blank = all(ink_fraction(source) < BLANK_INK for source in sample.images)
    except PageError:
        return None
    return bool(text.strip()) if blank else None
