"""The scores of one answer, by the track of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from rapidfuzz import fuzz

from loupe.benchmarks.folders.own.normalization import (
    Comparison,
    plain_page,
    prepare_formula,
    prepare_text,
    score_teds,
    separate_words,
)
from loupe.benchmarks.shared.answer_texts import remove_fence
from loupe.features.synth.page import Truth
from loupe.features.synth.scores.facts import judged
from loupe.metrics import character_errors, levenshtein_distance, normalized_edit_similarity, teds_struct, word_errors
from loupe.metrics.teds.table_tree import TedsError
from loupe.types import Prediction, Sample, Score, Scored

#: Two ends of the ladder `prior`, whose error rates are measures of their own.
RELIANCE = {"natural": "cer_natural", "random letters": "cer_random"}
#: A block counts as found where it is at least this alike to a piece of the answer, of 100.
_FOUND = 55.0
_AS_IT_IS, _WITHOUT_SPACE = Comparison(), Comparison(whitespace="ignore")

Scorer: TypeAlias = Callable[[str, Sample, Truth], list[Score]]


def score(sample: Sample, prediction: Prediction) -> Scored | list[Score]:
    """The measure of the track between 0 and 1, and what stands beside it. A failed answer earns nothing."""
    truth: Truth = sample.truth
    track = sample.tags["track"]
    if track == "traps":
        facts = judged(prediction.text, truth.facts)
        passed = all(fact["held"] for fact in facts) and not prediction.failed
        return Scored(scores=[Score(measure="traps", counts=(float(passed), 1.0))], details={"facts": facts})
    return _SCORERS.get(track, _text)(prediction.text, sample, truth)


def _template(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """A design of the user's: its values as those of `detail`, its text as that of a plain page."""
    own = Score(measure="plain", counts=_text(answer, sample, truth)[0].counts)
    return [*_detail(answer, sample, truth), own, *_text(answer, sample, truth)[1:]]


def _text(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """Accuracy is 1 − CER of the page, and 0 where there are more edits than characters."""
    comparison = _AS_IT_IS if truth.glue else _WITHOUT_SPACE
    found, wanted = prepare_text(remove_fence(answer), comparison), prepare_text(truth.text, comparison)
    edits = character_errors(found, wanted)
    accuracy = max(0.0, 1.0 - edits[0] / max(edits[1], 1.0))
    scores = [
        Score(measure=sample.tags["track"], counts=(accuracy, 1.0)),
        Score(measure="cer", counts=edits),
        Score(measure="wer", counts=word_errors(separate_words(found), separate_words(wanted))),
        Score(measure="text_similarity", counts=(normalized_edit_similarity(found, wanted), 1.0)),
    ]
    rung = RELIANCE.get(sample.tags["rung"]) if sample.tags["track"] == "prior" else None
    return [*scores, Score(measure=rung, counts=edits)] if rung else scores


def _detail(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """Each value: whether the answer has it exactly, white space aside; and whether a wrong one was put right."""
    found = "".join(answer.split())
    scores = []
    for field in truth.fields:
        value = "".join(field.value.split())
        kind = "wrong check digit" if field.corrected else "value"
        tags = {"field": field.name, "value": kind}
        scores.append(Score(measure="detail", counts=(float(value in found), 1.0), unit=field.name, tags=tags))
        if field.corrected:
            mended = value not in found and "".join(field.corrected.split()) in found
            scores.append(Score(measure="corrected", counts=(float(mended), 1.0), unit=field.name))
    return scores


def _table(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """TEDS of the first table of the answer, and TEDS of its structure alone."""
    teds = score_teds(answer, truth.html, _AS_IT_IS)
    try:
        structure = max(0.0, teds_struct(plain_page(answer, _AS_IT_IS), plain_page(truth.html, _AS_IT_IS)))
    except TedsError:
        structure = 0.0
    return [
        Score(measure="tables", counts=teds.counts, tags=teds.tags),
        Score(measure="teds_structure", counts=(structure, 1.0)),
    ]


def _formula(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    similarity = normalized_edit_similarity(prepare_formula(answer), prepare_formula(truth.latex))
    return [Score(measure="formulas", counts=(similarity, 1.0))]


def _order(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """How alike the order of the blocks in the answer is to that on the page; a lost block is one edit."""
    found = prepare_text(answer, _AS_IT_IS)
    places: list[tuple[float, int]] = []
    for number, block in enumerate(truth.blocks):
        match = fuzz.partial_ratio_alignment(prepare_text(block, _AS_IT_IS), found, score_cutoff=_FOUND)
        if match is not None and found:
            places.append((match.dest_start, number))
    read = "".join(chr(0x100 + number) for _, number in sorted(places))
    true = "".join(chr(0x100 + number) for number in range(len(truth.blocks)))
    value = 1.0 - levenshtein_distance(read, true) / max(len(true), 1)
    return [Score(measure="order", counts=(max(0.0, value), 1.0)), *_text(answer, sample, truth)[1:]]


_SCORERS: Mapping[str, Scorer] = {
    "detail": _detail,
    "tables": _table,
    "formulas": _formula,
    "order": _order,
    "template": _template,
}
