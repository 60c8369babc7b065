"""What was read of a page's regions as one answer: Markdown, the regions as JSON, and what was lost on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from loupe.engines.answers.steps import apply_adapters
from loupe.engines.layout.formatting import ReadRegion, format_pages
from loupe.engines.layout.labels import IMAGE, category_of
from loupe.engines.layout.page_regions import CutPage, CutRegion
from loupe.errors import EngineError, EngineTimeoutError, RejectedError
from loupe.types import Output, Prediction, Request

#: Said where a benchmark asks something: its answer is not in a transcript.
QUESTION = "question_not_asked"
FAILED = "layout_failed"


@dataclass(frozen=True, slots=True)
class Joiner:
    """Makes pages of regions. `steps` prepare each answer, as `images` says whether images are in the Markdown."""

    steps: Sequence[str]
    images: Literal["keep", "drop"] = "keep"

    def join(self, request: Request, page: CutPage, ended: Sequence[Prediction]) -> Output:
        """The answer for a page, with all regions and raw answers beside it; `ended` are those of regions with data.

        Raises EngineError, EngineTimeoutError or RejectedError where there are regions and none could be read.
        """
        answers = dict(zip((region.index for region in page.regions if region.data), ended, strict=True))
        lost = [_lost(region, answers.get(region.index)) for region in page.regions]
        losses = [loss for loss in lost if loss is not None]
        if answers and all(answer.failed for answer in answers.values()):
            raise _failure(list(answers.values()))
        read = [self._read(region, answers.get(region.index)) for region in page.regions]
        kept = frozenset((0, region.box) for region in page.regions if _is_image(region) and self.images == "keep")
        formatted = format_pages([read], crops=kept)
        calls = sum(answer.attempt for answer in answers.values())
        seconds = sum(answer.seconds for answer in answers.values())
        response: dict[str, Any] = {
            "regions": [region.record() for region in formatted.pages[0]],
            "calls": calls,
            "regions_read": sum(not answer.failed for answer in answers.values()),
            "failed_regions": len(losses),
            "layout": _layout(page),
            "answers": [_answer(region, answers[region.index]) for region in page.regions if region.index in answers],
        }
        response |= {"lost": losses} if losses else {}
        response |= {FAILED: page.failed} if page.failed else {}
        response |= {QUESTION: True} if request.prompt else {}
        return Output(
            text=formatted.markdown,
            finish_reason=_finish_reason(list(answers.values())),
            input_tokens=_sum([answer.input_tokens for answer in answers.values()]),
            output_tokens=_sum([answer.output_tokens for answer in answers.values()]),
            seconds=page.seconds + seconds,
            discarded_tokens=_discarded(list(answers.values())),
            response=response,
        )

    def _read(self, region: CutRegion, answer: Prediction | None) -> ReadRegion:
        content = None
        if answer is not None and not answer.failed:
            content = apply_adapters(answer.text, self.steps)
        return ReadRegion(
            index=region.index, label=region.label, content=content, box=region.box, skipped=region.task == "skip"
        )


def _is_image(region: CutRegion) -> bool:
    return region.task == "skip" or category_of(region.label) == IMAGE


def _layout(page: CutPage) -> dict[str, Any]:
    """What the detector found, and how long that took."""
    tasks = Counter(region.task for region in page.regions)
    found = {"width": page.width, "height": page.height, "detections": page.found, "seconds": round(page.seconds, 4)}
    known: dict[str, Any] = {**found, **{str(task): count for task, count in tasks.items()}}
    return known | ({"left_out": page.left_out} if page.left_out else {})


def _lost(region: CutRegion, answer: Prediction | None) -> dict[str, Any] | None:
    """A region that should have been read and was not, and why."""
    if answer is None:
        outcome, error = ("rejected", region.error) if region.error else ("", "")
    else:
        outcome, error = (answer.outcome, answer.error) if answer.failed else ("", "")
    if not outcome:
        return None
    place = {"index": region.index, "label": region.label, "bbox_2d": list(region.box)}
    return {**place, "class": outcome, "error": error[:300]}


def _failure(answers: Sequence[Prediction]) -> EngineError:
    """The page's own failure: that of most of its regions."""
    ((outcome, _),) = Counter(answer.outcome for answer in answers).most_common(1)
    first = next(answer.error for answer in answers if answer.outcome == outcome)
    said = f"none of the page's {len(answers)} regions could be read: {first}"
    if outcome == "timeout":
        return EngineTimeoutError(said)
    return RejectedError(said) if outcome == "rejected" else EngineError(said)


def _answer(region: CutRegion, answer: Prediction) -> dict[str, Any]:
    """What the model gave for a region, to the letter."""
    known: dict[str, Any] = {"index": region.index, "label": region.label, "task": region.task}
    known |= {"bbox_2d": list(region.box), "score": round(region.score, 4), "class": answer.outcome}
    known |= {"text": answer.text, "seconds": answer.seconds, "attempt": answer.attempt}
    tokens = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    known |= {key: value for key, value in tokens.items() if value is not None}
    return known | ({"finish_reason": answer.finish_reason} if answer.finish_reason else {})


def _finish_reason(answers: Sequence[Prediction]) -> str | None:
    """`length` where any region was cut off: then the page is, too."""
    reasons = [answer.finish_reason for answer in answers if answer.finish_reason]
    return "length" if "length" in reasons else reasons[0] if reasons else None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _discarded(answers: Sequence[Prediction]) -> tuple[int, int]:
    pairs = [answer.discarded_tokens for answer in answers if answer.discarded_tokens is not msgspec.UNSET]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
